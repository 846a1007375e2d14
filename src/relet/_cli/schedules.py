"""`relet schedules shop:app`: list schedules; add, change, pause, resume, run or remove one."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from .._client.schedules import Schedules
from .._core.schedule import Missed, Overlap
from ..app import App
from ..errors import InvalidInput, ScheduleNotFound
from . import output
from .arguments import add_app, add_words, duration
from .enqueue import add_arguments, arguments
from .load_app import opened

VERB_HELP = """\
verbs:
  list                list all schedules
  show NAME           show one, with its latest ticks
  put NAME TASK       add a schedule, or change the one of that name; needs --cron or --every
  pause NAME          skip ticks until the schedule is resumed
  resume NAME         continue with the next tick
  run NAME            enqueue its job now, in addition to its ticks
  remove NAME         remove the schedule; its jobs stay"""

VERBS = {"pause": "pause", "resume": "resume", "run": "run_now", "remove": "remove"}


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "schedules",
        help="list schedules; add, pause, resume, run or remove one",
        description="List schedules, or add, change, pause, resume, run or remove one.",
        epilog=VERB_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_app(parser)
    add_words(parser, "NAME", ("list", "show", "put", *VERBS))
    add = parser.add_argument_group("put").add_argument
    add("--cron", metavar="FIELDS", help="five cron fields: --cron '30 3 * * *'")
    add("--every", type=duration, metavar="S", help="an interval instead of --cron: 90, 15m, 2h")
    add("--timezone", metavar="ZONE", help="time zone of --cron (default UTC)")
    add("--missed", choices=get_args(Missed), help="what to do with ticks while no worker ran (default once)")
    add("--overlap", choices=get_args(Overlap), help="what to do with a tick while an earlier job is not finished "
        "(default allow)")  # fmt: skip
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Apply the verb, and print the result."""
    verb, *names = options.words or ["list"]
    operands = {"list": 0, "show": 1, "put": 2, **dict.fromkeys(VERBS, 1)}
    if verb not in operands:
        raise InvalidInput(f"Unknown verb {verb!r}: use one of {', '.join(operands)}.")
    if len(names) < operands[verb]:
        what = "a name and a task" if verb == "put" else "a schedule name"
        raise InvalidInput(f"{verb} needs {what}. List schedules: relet schedules {options.app}")
    if len(names) > operands[verb]:
        raise InvalidInput(f"{verb} does not take these arguments: {' '.join(names[operands[verb] :])}")
    with opened(options) as (app, client):
        return _run(app, client.schedules, verb, names, options)


def _run(app: App, schedules: Schedules, verb: str, names: list[str], options: argparse.Namespace) -> int:
    if verb == "list":
        return _list(schedules, options.json)
    if verb == "show":
        return _show(schedules, names[0], options.json)
    one = names[0]
    done = _put(app, schedules, one, names[1], options) if verb == "put" else getattr(schedules, VERBS[verb])(one)
    if options.json:
        output.as_json({"removed": names[0]} if done is None else done)
    else:
        print(output.plain(f"Removed schedule {names[0]}." if done is None else repr(done)))
    return 0


def _put(app: App, schedules: Schedules, name: str, task: str, options: argparse.Namespace) -> Any:
    values = {name: getattr(options, name) for name in ("every", "timezone", "missed", "overlap")}
    settings = {name: value for name, value in values.items() if value is not None}
    (payload,) = arguments(options) if options.file is None else [_no_file()]
    return schedules.put(name, app.lookup(task).draft(**payload), options.cron, **settings)


def _no_file() -> dict[str, Any]:
    raise InvalidInput("A schedule has one payload: use --arg or --payload, not --file.")


def _list(schedules: Schedules, json: bool) -> int:
    found = schedules.all()
    if json:
        output.as_json({"schedules": found})
        return 0
    heads = ("NAME", "WHEN", "ZONE", "TASK", "NEXT (UTC)", "LAST (UTC)", "MISSED", "OVERLAP")
    output.table(
        heads,
        [
            (one.name, one.when, one.timezone, one.task,
             "paused" if one.paused else one.next_at, one.last_at, one.missed, one.overlap)
            for one in found
        ],
    )  # fmt: skip
    return 0


def _show(schedules: Schedules, name: str, json: bool) -> int:
    one, ticks = schedules.get(name), schedules.ticks(name, limit=20)
    if one is None:
        raise ScheduleNotFound(name)
    if json:
        output.as_json({"schedule": one, "ticks": ticks})
        return 0
    output.facts(
        [
            ("name", one.name), ("task", one.task), ("queue", one.queue), ("payload", one.payload_json),
            ("when", one.problem or one.when), ("zone", one.timezone), ("missed", one.missed),
            ("overlap", one.overlap), ("next", "paused" if one.paused else one.next_at),
            ("declared in code", "yes" if one.declared else "no"),
        ]
    )  # fmt: skip
    if ticks:
        print()
        output.table(("TICK (UTC)", "JOB", "NOTE"), ticks)
    return 0
