"""`relet enqueue shop:app charge --arg account=acct-7`: a job, or many from a file."""

from __future__ import annotations

import argparse
import sys
from typing import Any, get_args

import msgspec

from .._core.backoff import Backoff
from .._core.job import OnBlockerFailure, OnExpired, OnFailure
from ..errors import InvalidArguments, InvalidInput
from . import output
from .arguments import add_app, decode, duration, later, read
from .load_app import opened

OPTIONS = (
    "queue", "priority", "run_at", "delay", "target", "key", "unique", "unique_for", "replace", "after", "id",
    "max_attempts", "backoff", "timeout", "on_expired", "on_failure", "on_blocker_failure",
)  # fmt: skip


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "enqueue",
        help="enqueue a job, or many from a file",
        description="Enqueue a job, or many from a file, and print their ids.",
    )
    add_app(parser)
    parser.add_argument("task", metavar="TASK", help="the name of the task")
    add_arguments(parser)
    add_options(parser)
    parser.set_defaults(run=run)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the task is to be called with."""
    add = parser.add_argument_group("arguments of the task").add_argument
    add("--arg", action="append", default=[], metavar="NAME=JSON",
        help="one of them; what is not JSON is text: --arg account=acct-7 --arg cents=500; repeatable")  # fmt: skip
    add("--payload", metavar="JSON", help="all of them as one object")
    add("--file", metavar="PATH", help="such an object from a file, or from what is piped in (-); a list of them, or "
        "one on each line, makes as many jobs, all or none")  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """What one job may have of its own."""
    add = parser.add_argument_group("options of the job, in place of the task's").add_argument
    add("--queue", metavar="NAME", help="in this queue")
    add("--priority", type=int, metavar="N", help="-100 to 100; higher runs first")
    add("--delay", type=duration, metavar="S", help="not before so long from now: 90, 15m, 2h")
    add("--run-at", type=later, metavar="WHEN", help="not before then: 2026-11-16T09:30Z")
    add("--target", metavar="NAME", help="what it acts on: one at a time, in order")
    add("--key", metavar="NAME", help="whose it is, where a queue is shared or limited by that")
    add("--unique", metavar="KEY", help="one live job per key")
    add("--unique-for", type=duration, metavar="S", help="one per window of so long")
    add("--replace", choices=("all", "payload"), help="a job that waits under the unique key takes these arguments and "
        "with all of it the time as well")  # fmt: skip
    add("--after", action="append", metavar="ID", help="wait for this job's chain; repeatable")
    add("--id", metavar="UUID7", help="under this id; one that exists stays as it is")
    add("--max-attempts", type=int, metavar="N", help="at most so many")
    add("--backoff", type=backoff, metavar="BASE[,MAX]", help="seconds before the second attempt, doubled for each "
        "further one up to the most: 1s,5m")  # fmt: skip
    add("--timeout", type=duration, metavar="S", help="the longest that an attempt may take")
    add("--on-expired", choices=get_args(OnExpired), help="when a lease runs out")
    add("--on-failure", choices=get_args(OnFailure), help="what becomes of its target when it fails")
    add("--on-blocker-failure", choices=get_args(OnBlockerFailure), help="when what it waits for fails")


def run(options: argparse.Namespace) -> int:
    """Check, store, print the ids."""
    given = {name: getattr(options, name) for name in OPTIONS if getattr(options, name) is not None}
    if given.get("replace") == "all":
        given["replace"] = True
    with opened(options) as (app, client):
        task = app.lookup(options.task).using(**given)
        payloads = arguments(options)
        if len(payloads) > 1 and "id" in given:
            raise InvalidInput(f"an id is for one job, and these are {len(payloads)}")
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
            print(f"relet: job {job.id} was there already; it is {job.state}", file=sys.stderr)
    return 0


def backoff(text: str) -> Backoff:
    """`1s,5m`: from a second on, five minutes at the most."""
    base, comma, most = text.partition(",")
    return Backoff(base=duration(base), max=duration(most)) if comma else Backoff(base=duration(base))


def arguments(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What the task is called with, for each job."""
    ways = [name for name in ("arg", "payload", "file") if getattr(options, name)]
    if len(ways) > 1:
        raise InvalidInput(f"give the arguments in one way, not by {' and '.join(f'--{way}' for way in ways)}")
    if options.payload is not None:
        return [_named(decode(options.payload, "--payload"), "--payload")]
    if options.file is not None:
        found = _documents(read(options.file), options.file)
        return [_named(one, f"{options.file}, job {number}") for number, one in enumerate(found, 1)]
    return [_named(dict(_argument(text) for text in options.arg), "--arg")]


def _argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InvalidInput(f"--arg is a name and a value, as in --arg account=acct-7, not {text!r}")
    try:
        return name, msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError):
        if value[:1] in ("{", "[", '"'):
            return name, decode(value, f"--arg {name}")  # it was meant to be JSON: say what is wrong
        return name, value


def _hint(given: list[str], complaint: str) -> str:
    """`--arg account=7` is a number, and the task may want text."""
    if "Expected `str`" not in complaint:
        return ""
    name = complaint.partition("(")[2].partition(")")[0]
    return next((f"""; for text say --arg '{name}="{text.partition("=")[2]}"'""" for text in given
                 if text.startswith(f"{name}=")), "")  # fmt: skip


def _documents(text: str, path: str) -> list[Any]:
    """One object, a list of them, or one on each line."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        if len(lines) < 2:
            decode(text, path)
        return [decode(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    return found if isinstance(found, list) else [found]


def _named(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, dict) and "self" not in value:  # which no task can have, as it would be a method
        return value
    raise InvalidInput(f'{where}: the arguments go by their names, as in {{"account": "acct-7"}}, not {value!r:.60}')
