"""`leasehold schedules shop:app`: what is enqueued on a clock; and pause, resume, run, remove."""

from __future__ import annotations

import argparse
from typing import Any

from .. import logs
from ..app import App
from ..core.errors import InvalidInput, ScheduleNotFound
from ..schedules import Schedules
from . import show
from .load import client_of, load_app


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "schedules",
        help="list schedules; pause, resume, run or remove one",
        description="List what is enqueued on a clock, or do something with one of them.",
    )
    add = parser.add_argument
    add("app", help="where the app is, as in shop:app")
    add("verb", nargs="?", default="list", choices=("list", "show", *VERBS), help="what to do (default list)")
    add("name", nargs="?", help="with which of them")
    add("--tenant", metavar="NAME", help="that tenant's")
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


VERBS = {
    "pause": Schedules.pause,
    "resume": Schedules.resume,
    "run": Schedules.run_now,
    "remove": Schedules.remove,
}


def run(options: argparse.Namespace) -> int:
    """Do it, and say what came of it."""
    logs.configure("error", as_json=False)
    app = load_app(options.app)
    try:
        return _run(app, options)
    finally:
        app.close()


def _run(app: App, options: argparse.Namespace) -> int:
    schedules = client_of(app, options.tenant).schedules
    if options.verb == "list":
        return _list(schedules, options.json)
    if options.name is None:
        raise InvalidInput(f"{options.verb} which? `leasehold schedules {options.app}` lists them")
    if options.verb == "show":
        return _show(schedules, options.name, options.json)
    done = VERBS[options.verb](schedules, options.name)
    if options.json:
        show.as_json(done)
    else:
        print(show.plain(f"removed {options.name}" if done is None else repr(done)))
    return 0


def _list(schedules: Schedules, json: bool) -> int:
    found = schedules.all()
    if json:
        show.as_json(found)
        return 0
    heads = ("NAME", "WHEN", "ZONE", "TASK", "NEXT (UTC)", "LAST (UTC)", "MISSED", "OVERLAP")
    show.table(
        heads,
        [
            (one.name, one.cron or f"every {one.every:g} s", one.timezone, one.task,
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
        show.as_json({"schedule": one, "ticks": ticks})
        return 0
    show.facts(
        [
            ("name", one.name), ("task", one.task), ("queue", one.queue), ("payload", one.payload),
            ("when", one.cron or f"every {one.every:g} s"), ("zone", one.timezone), ("missed", one.missed),
            ("overlap", one.overlap), ("next", "paused" if one.paused else one.next_at),
            ("declared in code", "yes" if one.declared else "no"),
        ]
    )  # fmt: skip
    if ticks:
        print()
        show.table(("TICK (UTC)", "JOB", "NOTE"), ticks)
    return 0
