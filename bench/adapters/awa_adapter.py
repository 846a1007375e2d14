"""awa, with its queue storage engine."""

import asyncio
import os
import sys
from dataclasses import dataclass

import awa
import wire

URL = os.environ["BENCH_URL"]
CONCURRENCY = int(os.environ.get("BENCH_CONCURRENCY", "200"))
QUEUE = "default"


@dataclass
class Noop:
    account: str
    cents: int


@dataclass
class Stamp:
    sent: float


@dataclass
class Flaky:
    number: int


async def setup():
    client = awa.AsyncClient(URL)
    await client.migrate()
    await client.install_queue_storage()


async def work():
    client = awa.AsyncClient(URL, max_connections=20)
    calls = wire.Calls()

    @client.task(Noop, queue=QUEUE)
    async def noop(job):
        calls.succeed()

    @client.task(Stamp, queue=QUEUE)
    async def stamp(job):
        calls.arrive(job.args.sent)

    @client.task(Flaky, queue=QUEUE)
    async def flaky(job):
        if calls.must_fail(job.args.number):
            return awa.RetryAfter(1.0)
        await asyncio.sleep(0.001)
        calls.finish()
        return None

    wire.serve_worker(calls)
    await client.start([(QUEUE, CONCURRENCY)])
    await asyncio.Event().wait()


async def produce():
    client = awa.AsyncClient(URL)
    await wire.serve_async_producer(
        lambda: client.insert(Noop("acct-7", 500), queue=QUEUE),
        lambda n: client.enqueue_many_copy([Noop("acct-7", 500) for _ in range(n)], queue=QUEUE),
        lambda sent: client.insert(Stamp(sent), queue=QUEUE),
        lambda numbers: client.enqueue_many_copy([Flaky(number) for number in numbers], queue=QUEUE),
    )


asyncio.run({"setup": setup, "worker": work, "producer": produce}[sys.argv[1]]())
