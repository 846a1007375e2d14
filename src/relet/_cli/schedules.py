"""`relet schedules shop:app`: what is enqueued on a clock; and add, change, pause, resume, run, remove."""

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

WORDS = """\
verbs:
  list                all schedules
  show NAME           one, with its latest ticks
  put NAME TASK       add one, or change the one of that name: --cron or --every says when
  pause NAME          let it not tick until it is resumed
  resume NAME         let it tick again, from the next tick on
  run NAME            enqueue its job now, beside its ticks
  remove NAME         forget it; its jobs stay"""

VERBS = {"pause": "pause", "resume": "resume", "run": "run_now", "remove": "remove"}


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "schedules",
        help="list schedules; add, pause, resume, run or remove one",
        description="List what is enqueued on a clock, or do something with one of them.",
        epilog=WORDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_app(parser)
    add_words(parser, "NAME", ("list", "show", "put", *VERBS))
    add = parser.add_argument_group("put").add_argument
    add("--cron", metavar="FIELDS", help="when, by five fields: --cron '30 3 * * *'")
    add("--every", type=duration, metavar="S", help="or at this interval: 90, 15m, 2h")
    add("--timezone", metavar="ZONE", help="of the fields (default UTC)")
    add("--missed", choices=get_args(Missed), help="what becomes of ticks at which no worker was there (default once)")
    add("--overlap", choices=get_args(Overlap), help="what becomes of a tick while an earlier job is not over "
        "(default allow)")  # fmt: skip
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Do it, and say what came of it."""
    verb, *names = options.words or ["list"]
    wanted = {"list": 0, "show": 1, "put": 2, **dict.fromkeys(VERBS, 1)}
    if verb not in wanted:
        raise InvalidInput(f"{verb!r} is not one of {', '.join(wanted)}")
    if len(names) < wanted[verb]:
        what = "put takes a name and a task" if names else f"{verb} which?"
        raise InvalidInput(f"{what} `relet schedules {options.app}` lists them")
    if len(names) > wanted[verb]:
        raise InvalidInput(f"{verb} takes no more words: {' '.join(names[wanted[verb] :])}")
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
        print(output.plain(f"removed {names[0]}" if done is None else repr(done)))
    return 0


def _put(app: App, schedules: Schedules, name: str, task: str, options: argparse.Namespace) -> Any:
    how = {word: getattr(options, word) for word in ("every", "timezone", "missed", "overlap")}
    how = {word: value for word, value in how.items() if value is not None}
    (payload,) = arguments(options) if options.file is None else [_no_file()]
    return schedules.put(name, app.lookup(task).draft(**payload), options.cron, **how)


def _no_file() -> dict[str, Any]:
    raise InvalidInput("--file is for many jobs; a schedule has one payload: --arg or --payload")


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
