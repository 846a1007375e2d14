"""pgqueuer on asyncpg and uvloop."""

import asyncio
import json
import logging
import os
import sys
from datetime import timedelta

import asyncpg
import uvloop
import wire
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.errors import RetryRequested
from pgqueuer.queries import Queries

URL = os.environ["BENCH_URL"]
BATCH = int(os.environ.get("BENCH_BATCH", "100"))
CONCURRENCY = int(os.environ.get("BENCH_CONCURRENCY", "0")) or None
PAYLOAD = json.dumps({"account": "acct-7", "cents": 500}).encode()


async def setup():
    await Queries(AsyncpgDriver(await asyncpg.connect(URL))).install()


async def work():
    queuer = PgQueuer.from_asyncpg_connection(await asyncpg.connect(URL))
    calls = wire.Calls()

    @queuer.entrypoint("noop")
    async def noop(job):
        json.loads(job.payload)
        calls.succeed()

    @queuer.entrypoint("stamp")
    async def stamp(job):
        calls.arrive(json.loads(job.payload)["sent"])

    @queuer.entrypoint("flaky")
    async def flaky(job):
        if calls.must_fail(json.loads(job.payload)["number"]):
            raise RetryRequested(delay=timedelta(seconds=1))
        await asyncio.sleep(0.001)
        calls.finish()

    wire.serve_worker(calls)
    await queuer.run(batch_size=BATCH, max_concurrent_tasks=CONCURRENCY, dequeue_timeout=timedelta(seconds=1))


async def produce():
    queries = Queries(AsyncpgDriver(await asyncpg.connect(URL)))

    def many(name, payloads):
        return queries.enqueue([name] * len(payloads), payloads, [0] * len(payloads))

    await wire.serve_async_producer(
        lambda: queries.enqueue("noop", PAYLOAD),
        lambda n: many("noop", [PAYLOAD] * n),
        lambda sent: queries.enqueue("stamp", json.dumps({"sent": sent}).encode()),
        lambda numbers: many("flaky", [json.dumps({"number": number}).encode() for number in numbers]),
    )


logging.disable(logging.ERROR)
uvloop.run({"setup": setup, "worker": work, "producer": produce}[sys.argv[1]]())
