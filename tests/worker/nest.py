"""A nest of workers that run `tests.worker.teller`: `python -m tests.worker.nest [--again] [--lease 1] queue ...`.

There is a worker process for each queue, forked, so that they are all there at once. With `--again` whoever dies is
born again.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from relet import Worker
from tests.worker.teller import app


def _hatch(queue: str, lease: float) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        asyncio.run(Worker(app, queues=[queue], concurrency=4, lease=lease, poll_interval=0.1).run())
    finally:
        os._exit(0)


def _nest(queues: list[str], *, again: bool, lease: float) -> None:
    living = {_hatch(queue, lease): queue for queue in queues}
    while living:
        pid, _ = os.wait()
        queue = living.pop(pid)
        if again:
            living[_hatch(queue, lease)] = queue


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("queues", nargs="+")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--lease", type=float, default=1.0)
    said = parser.parse_args()
    _nest(said.queues, again=said.again, lease=said.lease)
