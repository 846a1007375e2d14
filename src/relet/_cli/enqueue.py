"""`relet enqueue shop:app charge --arg account=acct-7`: enqueue a job, or many from a file."""

from __future__ import annotations

import argparse
import sys
from typing import Any, get_args

import msgspec

from .._core.backoff import Backoff
from .._core.job import OnDependencyFailure, OnExpired, OnFailure
from ..errors import InvalidArguments, InvalidInput
from . import output
from .arguments import add_app, decode, duration, future_time, named_values, read_text
from .load_app import opened

OPTIONS = (
    "queue", "priority", "run_at", "delay", "start_by", "target", "group", "tags", "unique", "unique_for", "replace",
    "depends_on", "id",
    "max_attempts", "backoff", "timeout", "on_expired", "on_failure", "on_dependency_failure",
)  # fmt: skip


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "enqueue",
        help="enqueue a job, or many from a file",
        description="Enqueue a job, or many from a file, and print their IDs.",
    )
    add_app(parser)
    parser.add_argument("task", metavar="TASK", help="the name of the task")
    add_arguments(parser)
    add_options(parser)
    parser.set_defaults(run=run)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the arguments of the task."""
    add = parser.add_argument_group("arguments of the task").add_argument
    add("--arg", action="append", default=[], metavar="NAME=JSON",
        help="one argument; text if it is not JSON: --arg account=acct-7 --arg cents=500; repeatable")  # fmt: skip
    add("--payload", metavar="JSON", help="all arguments as one object")
    add("--file", metavar="PATH", help="read the object from a file, or from standard input (-); a list of objects, "
        "or one object a line, makes one job each, all in one transaction")  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that override those of the task."""
    add = parser.add_argument_group("options of the job, which override those of the task").add_argument
    add("--queue", metavar="NAME", help="the queue")
    add("--priority", type=int, metavar="N", help="-100 to 100; higher runs first")
    add("--delay", type=duration, metavar="S", help="run after this delay: 90, 15m, 2h")
    add("--run-at", type=future_time, metavar="WHEN", help="run at or after this time: 2026-11-16T09:30Z")
    add("--start-by", type=future_time, metavar="WHEN", help="cancel the job if it has not started by then")
    add("--target", metavar="NAME", help="what the job acts on; jobs of one target run one at a time, in order")
    add("--group", metavar="NAME", help="the group by which fair queues and rates share out jobs")
    add("--tag", action="append", dest="tags", metavar="TAG", help="a word to find the job by; repeatable")
    add("--unique", metavar="KEY", help="allow one live job per key")
    add("--unique-for", type=duration, metavar="S", help="allow one job per key in this time window")
    add("--replace", choices=("all", "payload"), help="replace the payload of a job that waits under the unique key; "
        "with all also its time")  # fmt: skip
    add("--depends-on", action="append", metavar="ID", help="wait for this job's chain; repeatable")
    add("--id", metavar="UUID7", help="the ID of the job; an existing job with this ID is not changed")
    add("--max-attempts", type=int, metavar="N", help="the maximum number of attempts")
    add("--backoff", type=backoff, metavar="BASE[,MAX]", help="delay before the second attempt, doubled for each "
        "further one up to MAX: 1s,5m")  # fmt: skip
    add("--timeout", type=duration, metavar="S", help="time limit of an attempt")
    add("--on-expired", choices=get_args(OnExpired), help="what to do with the job when a lease expires")
    add("--on-failure", choices=get_args(OnFailure), help="what to do with its target when the job fails")
    add(
        "--on-dependency-failure",
        choices=get_args(OnDependencyFailure),
        help="what to do with the job when a job that it waits for fails",
    )


def run(options: argparse.Namespace) -> int:
    """Check the arguments, store the jobs, print their IDs."""
    overrides = {name: getattr(options, name) for name in OPTIONS if getattr(options, name) is not None}
    if overrides.get("replace") == "all":
        overrides["replace"] = True
    with opened(options) as (app, client):
        task = app.lookup(options.task).using(**overrides)
        payloads = arguments(options)
        if len(payloads) > 1 and "id" in overrides:
            raise InvalidInput(f"--id is for one job, but there are {len(payloads)} payloads.")
        try:
            drafts = [task.draft(**payload) for payload in payloads]
        except InvalidArguments as error:
            raise InvalidInput(f"{error}{_hint(options.arg, str(error))}") from None
        jobs = client.enqueue_many(drafts)
    if options.json:
        output.as_json({"jobs": jobs})
        return 0
    for job in jobs:
        print(job.id)
        if job.existing:
            print(f"relet: Job {job.id} already exists; it is {job.state}.", file=sys.stderr)
    return 0


def backoff(text: str) -> Backoff:
    """Parse `BASE[,MAX]`, such as `1s,5m`."""
    base, comma, longest = text.partition(",")
    return Backoff(base=duration(base), max=duration(longest)) if comma else Backoff(base=duration(base))


def arguments(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The arguments of the task, for each job."""
    sources = [name for name in ("arg", "payload", "file") if getattr(options, name)]
    if len(sources) > 1:
        raise InvalidInput(f"Use only one of {' and '.join(f'--{source}' for source in sources)}.")
    if options.payload is not None:
        return [_named(decode(options.payload, "--payload"), "--payload")]
    if options.file is not None:
        found = _documents(read_text(options.file), options.file)
        return [_named(one, f"{options.file}, job {number}") for number, one in enumerate(found, 1)]
    return [_named(named_values(options.arg), "--arg")]


def _hint(arguments: list[str], message: str) -> str:
    """How to pass text: `--arg account=7` is a number, but the task may want text."""
    if "Expected `str`" not in message:
        return ""
    name = message.partition("(")[2].partition(")")[0]
    return next((f"""; to pass text, use --arg '{name}="{text.partition("=")[2]}"'""" for text in arguments
                 if text.startswith(f"{name}=")), "")  # fmt: skip


def _documents(text: str, path: str) -> list[Any]:
    """Decode one object, a list of objects, or one object a line."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        if len(lines) < 2:
            decode(text, path)
        return [decode(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    return found if isinstance(found, list) else [found]


def _named(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, dict) and "self" not in value:  # no task has a parameter "self"
        return value
    raise InvalidInput(f'{where}: needs a JSON object of arguments, such as {{"account": "acct-7"}}, not {value!r:.60}')
