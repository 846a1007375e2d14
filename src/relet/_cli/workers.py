"""`relet workers shop:app`: who is there to run jobs, and what each of them holds."""

from __future__ import annotations

import argparse
from typing import Any

from .._client.client import Client
from . import output
from .arguments import add_app
from .load_app import Wrong, opened


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "workers",
        help="list workers, or show what one of them holds",
        description="List workers with their slots; or show one with the jobs that it holds and their leases.",
    )
    add_app(parser)
    parser.add_argument("name", nargs="?", metavar="NAME", help="show this worker")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look, print, done."""
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
        raise Wrong(f"no such worker: {options.name}; `relet workers {options.app}` lists them")
    held = client.jobs(state="running", worker=one.name, limit=1000).jobs
    if options.json:
        output.as_json({"worker": one, "jobs": held})
        return 0
    output.facts(
        [
            ("name", one.name), ("state", state_of(one)), ("host", one.host), ("process", one.pid),
            ("started", one.started_at), ("seen", one.seen_at), ("queues", queues_of(one)),
            ("slots", f"{one.running} of {one.slots} in use"), ("lease", output.seconds(one.lease)),
            ("version", one.version), ("tasks", ", ".join(one.tasks)),
        ]
    )  # fmt: skip
    if held:
        print()
        lines = [
            (job.id, job.task, job.queue, output.since(job.started_at), output.until(job.expires_at),
             output.progress(job.progress))
            for job in held
        ]  # fmt: skip
        output.table(("ID", "TASK", "QUEUE", "RUNS FOR", "LEASE LEFT", "PROGRESS"), lines)
    return 0


def state_of(worker: Any) -> str:
    """What is the matter with it, in a word."""
    return "lost" if worker.lost else "stopping" if worker.stopping else "running"


def queues_of(worker: Any) -> str:
    """Which queues it serves."""
    return "all" if worker.queues is None else ", ".join(worker.queues)
