"""`leasehold jobs shop:app`: which jobs there are, how far they have come, and all about one of them."""

from __future__ import annotations

import argparse
from typing import Any

from .. import logs
from ..app import App
from ..core.errors import JobNotFound
from ..core.job import State
from . import show
from .load import client_of, load_app


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "jobs",
        help="list jobs, or show one of them",
        description="List jobs, newest first, with their progress; or show one job in detail.",
    )
    add = parser.add_argument
    add("app", help="where the app is, as in shop:app")
    add("id", nargs="?", help="show this job in detail")
    add("--state", action="append", choices=[state.value for state in State], help="only those; repeatable")
    add("--queue", metavar="NAME", help="only of this queue")
    add("--task", metavar="NAME", help="only of this task")
    add("--target", metavar="NAME", help="only of this target")
    add("--limit", type=int, default=20, metavar="N", help="so many (default 20)")
    add("--before", metavar="ID", help="go on after this job")
    add("--tenant", metavar="NAME", help="that tenant's")
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look, print, done."""
    logs.configure("error", as_json=False)
    app = load_app(options.app)
    try:
        return _show(app, options) if options.id else _list(app, options)
    finally:
        app.close()


def _list(app: App, options: argparse.Namespace) -> int:
    page = client_of(app, options.tenant).jobs(
        state=options.state, queue=options.queue, task=options.task, target=options.target,
        limit=options.limit, before=options.before,
    )  # fmt: skip
    if options.json:
        show.as_json({"jobs": page.jobs, "next": page.next})
        return 0
    heads = ("ID", "TASK", "QUEUE", "STATE", "ATTEMPT", "CREATED (UTC)", "PROGRESS")
    show.table(
        heads,
        [
            (job.id, job.task, job.queue, show.state(job), f"{job.attempt}/{job.max_attempts}", job.created_at,
             show.progress(job.progress))
            for job in page.jobs
        ],
    )  # fmt: skip
    if page.next:
        print(f"more: --before {page.next}")
    return 0


def _show(app: App, options: argparse.Namespace) -> int:
    client = client_of(app, options.tenant)
    job = client.get(options.id)
    if job is None:
        raise JobNotFound(options.id)
    attempts, chain, why = client.attempts(job), client.chain(job), client.explain(job)
    if options.json:
        show.as_json({"job": job, "attempts": attempts, "chain": list(chain), "explain": why})
        return 0
    show.facts(
        [
            ("id", job.id), ("task", job.task), ("queue", job.queue), ("priority", job.priority or None),
            ("state", show.state(job)), ("why", "; ".join(why)), ("progress", show.progress(job.progress) or None),
            ("payload", job.payload), ("result", job.result), ("error", _first_line(job.error) or None),
            ("target", job.target), ("key", job.key), ("unique", job.unique),
            ("attempt", f"{job.attempt} of {job.max_attempts}"),
            ("lost workers", job.losses or None), ("created", job.created_at), ("run at", job.run_at),
            ("started", job.started_at), ("ended", job.finished_at), ("worker", job.worker),
            ("lease until", job.expires_at), ("chain", " -> ".join(one.task for one in chain)),
        ]
    )  # fmt: skip
    if attempts:
        print()
        heads = ("ATTEMPT", "WORKER", "STARTED (UTC)", "ENDED (UTC)", "OUTCOME", "ERROR")
        show.table(
            heads,
            [
                (one.attempt, one.worker, one.started_at, one.ended_at, one.outcome, _first_line(one.error))
                for one in attempts
            ],
        )
    if job.error and "\n" in job.error:
        print("\n" + "\n".join(show.plain(line) for line in job.error.splitlines()))
    return 0


def _first_line(error: str | None) -> str:
    return (error or "").partition("\n")[0]
