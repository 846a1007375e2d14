"""`relet backup shop:app FILE` and `relet restored shop:app`: no job of a backup starts before an operator says so."""

from __future__ import annotations

import argparse
from typing import Any

from .._client.backup import Restored, make_backup, pause_restored
from . import output
from .arguments import add_app
from .load_app import opened, who

AFTER = """\
The command pauses all queues, so that workers can start without running any job, and counts the jobs that may have
run since the backup was made. Run it before the first worker starts."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "backup",
        help="copy a SQLite store into a file",
        description="Copy the SQLite file of a store while workers run. In the copy all queues are paused.",
    )
    add_app(parser)
    parser.add_argument("file", metavar="FILE", help="the new file; an existing one is not overwritten")
    parser.set_defaults(run=back_up)
    parser = commands.add_parser(
        "restored", help="pause all queues after a restore", description=f"Prepare a restored store.\n\n{AFTER}"
    )
    add_app(parser)
    parser.set_defaults(run=restored)


def back_up(options: argparse.Namespace) -> int:
    """Make the copy, and print what it holds."""
    with opened(options) as (app, _):
        client = app.client if options.tenant is None else app.client.tenant(options.tenant)
        found = make_backup(client.acting_as(who()), options.file)
    if options.json:
        output.as_json({"file": options.file, **_jobs(found)})
    else:
        jobs = ", ".join(f"{number} {state}" for state, number in _jobs(found).items())
        print(f"Wrote {output.plain(options.file)}: {jobs} jobs. All its queues are paused.")
    return 0


def restored(options: argparse.Namespace) -> int:
    """Pause all queues, and print which jobs may run twice, and how to resume."""
    with opened(options) as (app, _):
        client = app.client if options.tenant is None else app.client.tenant(options.tenant)
        found = pause_restored(client.acting_as(who()))
        where = client.where
    if options.json:
        output.as_json(found)
        return 0
    _print(found, where, options)
    return 0


def _print(found: Restored, where: str, options: argparse.Namespace) -> None:
    tenant = "" if options.tenant is None else f" --tenant {options.tenant}"
    app, slots = f"{options.app}{tenant}", "=10" if tenant else ""
    both = (("Paused now", found.paused), ("Paused already", found.paused_before))
    print(f"No queue of {where} starts jobs:")
    for what, queues in both:
        if queues:
            print(f"  {what}: {output.plain(', '.join(queues))}")
    print("These jobs may run twice, because they may have run since the backup was made:")
    print(f"  {found.running} running: an attempt had begun; it counts as lost, and the job runs again")
    print(f"  {found.queued} queued, {found.pending} pending")
    if found.schedules:
        print(f"  Schedules with ticks to catch up with: {output.plain(', '.join(found.schedules))}")
    print("Next:")
    print(f"  1. Cancel or complete the jobs that have run: relet jobs {app} --state running --state queued")
    print(f"  2. Start workers: relet worker {app}{slots}")
    print(f"  3. Resume one queue after the other: relet queues {app} resume NAME")


def _jobs(found: Restored) -> dict[str, int]:
    return {"running": found.running, "queued": found.queued, "pending": found.pending}
