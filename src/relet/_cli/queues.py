"""`relet queues shop:app`: list queues with their numbers of jobs; pause, resume and limit them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from .._client.client import Client
from .._core.views import QueueInfo, counted_at
from ..errors import InvalidInput
from . import output
from .arguments import add_app, add_words, duration, number_or_none
from .load_app import opened

KEEP = argparse.SUPPRESS  # without the flag the limit stays; None would remove it
KNOWN = ("list", "pause", "resume", "limit")
VERBS = """\
verbs:
  list [NAME ...]     list all queues, or these
  pause NAME ...      stop workers from claiming; running jobs continue
  resume NAME ...     let workers claim again
  limit NAME ...      set the limits of the options above and keep the others; '*' means all queues together"""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "queues",
        help="list queues; pause, resume or limit them",
        description="List queues with their numbers of jobs; or pause, resume and limit them.",
        epilog=VERBS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_app(parser)
    add_words(parser, "NAME", KNOWN)
    add = parser.add_argument_group("limits").add_argument
    add("--max-running", type=number_or_none, default=KEEP, metavar="N", help="how many jobs may run at once; or none")
    add("--rate", type=number_or_none, default=KEEP, metavar="N", help="how many jobs may start within --per; or none")
    add("--per", type=duration, metavar="S", help="the time window of --rate: 60, 1m")
    add("--group", metavar="GROUP", help="limit jobs of this group; '*': of each group")
    add("--fair", action=argparse.BooleanOptionalAction, help="claim from groups in turn")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Apply the verb, then list the queues."""
    verb, *names = options.words or ["list"]
    limits = _limits(options)
    if verb not in KNOWN:
        raise InvalidInput(f"Unknown verb {verb!r}: use one of {', '.join(KNOWN)}.")
    if verb != "list" and not names:
        raise InvalidInput(f"{verb} needs a queue name. List queues: relet queues {options.app}")
    if verb != "limit" and limits:
        raise InvalidInput(f"--{next(iter(limits)).replace('_', '-')} works only with limit, not with {verb}.")
    if verb == "limit":
        _check(limits)
    with opened(options) as (_, client):
        for name in names:
            _apply(client, verb, name, limits)
        return _list(client, options, names)


def _apply(client: Client, verb: str, name: str, limits: dict[str, Any]) -> None:
    if verb == "pause":
        client.pause_queue(name)
    elif verb == "resume":
        client.resume_queue(name)
    elif verb == "limit":
        client.limit_queue(None if name == "*" else name, **limits)


def _limits(options: argparse.Namespace) -> dict[str, Any]:
    nullable = {name: getattr(options, name) for name in ("max_running", "rate") if hasattr(options, name)}
    rest = {name: getattr(options, name) for name in ("per", "group", "fair")}
    return nullable | {name: value for name, value in rest.items() if value is not None}


def _check(limits: dict[str, Any]) -> None:
    """Refuse in the words of the command line what the client would refuse in those of Python."""
    if limits.get("rate") is not None and "per" not in limits:
        raise InvalidInput(f"--rate needs --per, as in --rate {limits['rate']} --per 60")
    if "per" in limits and limits.get("rate") is None:
        raise InvalidInput("--per needs --rate, as in --rate 100 --per 60")
    if not limits.keys() & {"max_running", "rate", "fair"}:
        raise InvalidInput("limit needs --max-running, --rate with --per, or --fair")


def _list(client: Client, options: argparse.Namespace, names: list[str]) -> int:
    found = [one for one in client.queues() if not names or one.queue in names]
    if options.json:
        output.as_json({"queues": found})
        return 0
    heads = ("QUEUE", "PAUSED", "PENDING", "QUEUED", "RUNNING", "PAUSED JOBS", "FAILED", "OLDEST", "LIMITS")
    output.table(
        heads,
        [
            ("all queues" if one.queue == "*" else one.queue, "yes" if one.paused else "", one.pending, one.queued,
             one.running, one.paused_jobs, one.failed, output.seconds(one.oldest), limits_of(one))
            for one in found
        ],
    )  # fmt: skip
    if note := count_note(found):
        print(note)
    return 0


def count_note(queues: Sequence[QueueInfo]) -> str:
    """Say how old the numbers are if there are too many jobs to count each time; else nothing."""
    moment = counted_at(queues)
    if moment is not None:
        return f"Too many jobs to count each time. These numbers were counted {output.since(moment)} ago."
    if any(one.at_least for one in queues):
        return (
            "Too many jobs to count, and no worker has counted them lately. These numbers cover only the newest jobs."
        )
    return ""


def _of_group(group: str | None) -> str:
    return {None: "", "*": " of each group"}.get(group, f" of {group}")


def limits_of(queue: Any) -> str:
    """All limits of a queue in one line."""
    limits = [] if queue.max_running is None else [f"{queue.max_running} at once"]
    for limit in queue.group_limits:
        limits.append(f"{limit.max_running} at once{_of_group(limit.group)}")
    for rate in queue.rates:
        limits.append(f"{rate.rate} in {rate.per:g} s{_of_group(rate.group)}")
    return ", ".join([*limits, *(["fair"] if queue.fair else [])])
