"""`relet workers shop:app`: list workers, or show one with the jobs that it runs."""

from __future__ import annotations

import argparse
from typing import Any

from .._client.client import Client
from . import output
from .arguments import add_app
from .load_app import CommandError, opened


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "workers",
        help="list workers, or show the jobs of one",
        description="List workers with their slots; or show one with its running jobs and their leases.",
    )
    add_app(parser)
    parser.add_argument("name", nargs="?", metavar="NAME", help="show this worker")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with opened(options) as (_, client):
        return _list(client, options) if options.name is None else _show(client, options)


def _list(client: Client, options: argparse.Namespace) -> int:
    found = client.workers()
    if options.json:
        output.as_json({"workers": found})
        return 0
    heads = ("WORKER", "STATE", "RUNNING", "SLOTS", "QUEUES", "TASKS", "LEASE", "UP", "SEEN", "VERSION")
    output.table(
        heads,
        [
            (one.name, state_of(one), one.running, one.slots, queues_of(one), len(one.tasks), output.seconds(one.lease),
             output.since(one.started_at), output.since(one.seen_at), one.version)
            for one in found
        ],
    )  # fmt: skip
    return 0


def _show(client: Client, options: argparse.Namespace) -> int:
    one = next((one for one in client.workers() if one.name == options.name), None)
    if one is None:
        raise CommandError(f"No such worker: {options.name}. List workers: relet workers {options.app}")
    running = client.jobs(state="running", worker=one.name, limit=1000).jobs
    if options.json:
        output.as_json({"worker": one, "jobs": running})
        return 0
    output.facts(
        [
            ("name", one.name), ("state", state_of(one)), ("host", one.host), ("process", one.pid),
            ("started", one.started_at), ("seen", one.seen_at), ("queues", queues_of(one)),
            ("slots", f"{one.running} of {one.slots} in use"), ("lease", output.seconds(one.lease)),
            ("version", one.version), ("tasks", ", ".join(one.tasks)),
        ]
    )  # fmt: skip
    if running:
        print()
        lines = [
            (job.id, job.task, job.queue, output.since(job.started_at), output.until(job.expires_at),
             output.progress(job.progress))
            for job in running
        ]  # fmt: skip
        output.table(("ID", "TASK", "QUEUE", "RUNS FOR", "LEASE LEFT", "PROGRESS"), lines)
    return 0


def state_of(worker: Any) -> str:
    """lost, stopping or running."""
    return "lost" if worker.lost else "stopping" if worker.stopping else "running"


def queues_of(worker: Any) -> str:
    """The queues that a worker serves, as text."""
    return "all" if worker.queues is None else ", ".join(worker.queues)
