"""Workers that run `tests.worker.transfer_tasks`.

`python -m tests.worker.worker_group [--again] [--lease 1] queue ...` forks a worker process for each queue: they
all exist at once. With `--again` a process that dies is replaced.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from relet import Worker
from tests.worker.transfer_tasks import app


def _fork_worker(queue: str, lease: float) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        asyncio.run(Worker(app, queues=[queue], concurrency=4, lease=lease, poll_interval=0.1).run())
    finally:
        os._exit(0)


def _run_group(queues: list[str], *, again: bool, lease: float) -> None:
    living = {_fork_worker(queue, lease): queue for queue in queues}
    while living:
        pid, _ = os.wait()
        queue = living.pop(pid)
        if again:
            living[_fork_worker(queue, lease)] = queue


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("queues", nargs="+")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--lease", type=float, default=1.0)
    arguments = parser.parse_args()
    _run_group(arguments.queues, again=arguments.again, lease=arguments.lease)
