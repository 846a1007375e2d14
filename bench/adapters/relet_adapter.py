"""Relet on PostgreSQL or SQLite. `bench.app` says what BENCH_FEATURE and the other variables do."""

import asyncio
import json
import logging
import os
import sys

from bench import app as bench_app
from bench.adapters import wire
from relet import Worker

SETTINGS = {
    "concurrency": int(os.environ.get("BENCH_CONCURRENCY", "10")),
    "lease": float(os.environ.get("BENCH_LEASE", "30")),
    "poll_interval": float(os.environ.get("BENCH_POLL", "1")),
    "queues": json.loads(os.environ.get("BENCH_SERVES", "null")),
    "max_jobs": json.loads(os.environ.get("BENCH_MAX_JOBS", "null")),
    "gateway": os.environ.get("BENCH_GATEWAY"),
}
app, jobs = bench_app.app, bench_app.Jobs()


def setup():
    app.client.migrate()
    jobs.limit_queues()


def work():
    app.client.count(limit=1)  # connect before the clock starts
    wire.serve_worker(bench_app.calls)
    logging.basicConfig(level="ERROR")
    asyncio.run(Worker(app, **SETTINGS).run())
    bench_app.calls.report()


def produce():
    app.client.count(limit=1)
    wire.serve_producer(
        lambda: bench_app.noop.enqueue("acct-7", 500),
        lambda n: app.client.enqueue_many(jobs.drafts(n)),
        lambda sent: bench_app.stamp.enqueue(sent),
        lambda numbers: app.client.enqueue_many([bench_app.flaky.draft(number) for number in numbers]),
    )


async def produce_async():
    await wire.serve_async_producer(
        lambda: bench_app.noop.aenqueue("acct-7", 500),
        lambda n: app.aclient.enqueue_many(jobs.drafts(n)),
        lambda sent: bench_app.stamp.aenqueue(sent),
        lambda numbers: app.aclient.enqueue_many([bench_app.flaky.draft(number) for number in numbers]),
    )


def main(role):
    if role == "setup":
        setup()
    elif role == "worker":
        work()
    elif os.environ.get("BENCH_PRODUCER") == "async":
        asyncio.run(produce_async())
    else:
        produce()


main(sys.argv[1])
