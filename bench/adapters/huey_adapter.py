"""huey on SQLite. BENCH_FSYNC=1: synchronous commits. It has no bulk enqueue."""

import logging
import os
import sys
import time

import wire
from huey import SqliteHuey

FSYNC = os.environ.get("BENCH_FSYNC") == "1"
calls = wire.Calls()
huey = SqliteHuey("bench", filename=os.environ["BENCH_FILE"], fsync=FSYNC, results=False)


@huey.task()
def noop(account, cents):
    calls.succeed()


@huey.task()
def stamp(sent):
    calls.arrive(sent)


@huey.task(retries=5, retry_delay=1)
def flaky(number):
    if calls.must_fail(number):
        raise ValueError("first attempt")
    time.sleep(0.001)
    calls.finish()


def repeat(task, arguments):
    for values in arguments:
        task(*values)


def main(role):
    logging.disable(logging.ERROR)
    if role == "setup":
        huey.pending_count()
    elif role == "worker":
        wire.serve_worker(calls)
        workers = int(os.environ.get("BENCH_CONCURRENCY", "1"))
        huey.create_consumer(workers=workers, worker_type="thread", periodic=False).run()
    else:
        wire.serve_producer(
            lambda: noop("acct-7", 500),
            lambda n: repeat(noop, [("acct-7", 500)] * n),
            stamp,
            lambda numbers: repeat(flaky, [(number,) for number in numbers]),
        )


main(sys.argv[1])
