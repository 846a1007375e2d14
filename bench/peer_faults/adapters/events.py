"""The handlers. Standard library only: it runs in every peer's environment.

A handler records its start and its end, or that it was cancelled, in a file that no fault reaches: one write for each
line. `run` identifies one call of a handler.
"""

import asyncio
import itertools
import json
import os
import sys
import time

SLOTS = int(os.environ.get("FAULTS_SLOTS", "4"))
URL = os.environ["FAULTS_URL"]
_runs = itertools.count(1)
_file = os.open(os.environ.get("FAULTS_EVENTS", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def write(event, **fields):
    line = json.dumps({"event": event, "pid": os.getpid(), "at": time.time(), **fields})
    os.write(_file, line.encode() + b"\n")


async def work(number, seconds, attempt):
    """Returns the run, which a peer that stores results has to store."""
    run = f"{os.getpid()}.{next(_runs)}"
    write("start", job=number, run=run, attempt=attempt)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        write("abort", job=number, run=run)
        raise
    write("end", job=number, run=run)
    return run


def jobs():
    """Numbers and seconds of the jobs to enqueue."""
    return json.load(sys.stdin)
