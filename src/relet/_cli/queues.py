"""`relet queues shop:app`: what waits and runs in each; pause, resume and limit them."""

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

KEEP = argparse.SUPPRESS  # not given: the limit stays; None would lift it
KNOWN = ("list", "pause", "resume", "limit")
VERBS = """\
verbs:
  list [NAME ...]     all queues, or these
  pause NAME ...      let no worker claim from them; what runs goes on
  resume NAME ...     let workers claim from them again
  limit NAME ...      set what the options below say and leave the rest; the name '*' means all queues together"""


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "queues",
        help="list queues; pause, resume or limit them",
        description="List queues with what waits and runs in them; or pause, resume and limit them.",
        epilog=VERBS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_app(parser)
    add_words(parser, "NAME", KNOWN)
    add = parser.add_argument_group("limits").add_argument
    add("--max-running", type=number_or_none, default=KEEP, metavar="N", help="at most so many run at once; or none")
    add("--rate", type=number_or_none, default=KEEP, metavar="N", help="at most so many start within --per; or none")
    add("--per", type=duration, metavar="S", help="the window of the rate: 60, 1m")
    add("--key", metavar="KEY", help="the rate is for jobs of this key; '*': for each key by itself")
    add("--fair", action=argparse.BooleanOptionalAction, help="serve keys in turn")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Do it, and show what came of it."""
    verb, *names = options.words or ["list"]
    limits = _limits(options)
    if verb not in KNOWN:
        raise InvalidInput(f"{verb!r} is not one of {', '.join(KNOWN)}")
    if verb != "list" and not names:
        raise InvalidInput(f"{verb} which queue? `relet queues {options.app}` lists them")
    if verb != "limit" and limits:
        raise InvalidInput(f"--{next(iter(limits)).replace('_', '-')} goes with limit, not with {verb}")
    with opened(options) as (_, client):
        for name in names:
            _do(client, verb, name, limits)
        return _list(client, options, names)


def _do(client: Client, verb: str, name: str, limits: dict[str, Any]) -> None:
    if verb == "pause":
        client.pause_queue(name)
    elif verb == "resume":
        client.resume_queue(name)
    elif verb == "limit":
        client.limit_queue(None if name == "*" else name, **limits)


def _limits(options: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(options, name) for name in ("max_running", "rate") if hasattr(options, name)}
    rest = {name: getattr(options, name) for name in ("per", "key", "fair")}
    return given | {name: value for name, value in rest.items() if value is not None}


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
    if said := counted(found):
        print(said)
    return 0


def counted(queues: Sequence[QueueInfo]) -> str:
    """Of when the numbers are, where there are too many jobs to count each time."""
    moment = counted_at(queues)
    if moment is not None:
        return f"too many jobs to count each time: these numbers were counted {output.since(moment)} ago"
    if any(one.at_least for one in queues):
        return (
            "too many jobs to count, and no worker has counted them lately: these numbers are of the newest jobs only"
        )
    return ""


def limits_of(queue: Any) -> str:
    """All limits of a queue in one line."""
    said = [] if queue.max_running is None else [f"{queue.max_running} at once"]
    for rate in queue.rates:
        whose = {None: "", "*": " of each key"}.get(rate.key, f" of {rate.key}")
        said.append(f"{rate.rate} in {rate.per:g} s{whose}")
    return ", ".join([*said, *(["fair"] if queue.fair else [])])
