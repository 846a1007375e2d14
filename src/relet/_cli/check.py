"""`relet check shop:app`: exit with 0 if a worker on this host is alive. A probe for service managers."""

from __future__ import annotations

import argparse
import socket
from typing import Any

from .._core.worker import WorkerInfo
from . import output
from .arguments import add_app
from .load_app import opened
from .workers import state_of

EPILOG = """\
A worker reports to the database every few seconds. It is alive while its reports arrive, and ready unless it is about
to stop. In a container, which has its own host name, this checks the worker of the container."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="exit with 0 if a worker on this host is alive",
        description="Check the workers on this host, for a liveness or readiness probe. Exits with 1 if none is alive.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_app(parser)
    add = parser.add_argument
    add("--host", default=socket.gethostname(), metavar="NAME", help="check the workers on this host (default: here)")
    add("--worker", metavar="NAME", help="check this worker, by its name or the beginning of its name")
    add("--ready", action="store_true", help="a worker that is stopping does not count")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with opened(options) as (_, client):
        found = [worker for worker in client.workers() if _is_meant(worker, options)]
    alive = [worker for worker in found if not worker.lost and not (options.ready and worker.stopping)]
    if options.json:
        output.as_json({"alive": bool(alive), "workers": found})
    else:
        for worker in found:
            print(output.plain(f"{worker.name}: {state_of(worker)}, seen {output.since(worker.seen_at)} ago"))
        if not found:
            print(f"No worker on {output.plain(options.worker or options.host)} has reported within the last day.")
    return 0 if alive else 1


def _is_meant(worker: WorkerInfo, options: argparse.Namespace) -> bool:
    return worker.name.startswith(options.worker) if options.worker else worker.host == options.host
