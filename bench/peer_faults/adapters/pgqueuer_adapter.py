"""pgqueuer on a pool of asyncpg. A worker that meets an error exits, for its supervisor to start it again."""

import asyncio
import json
import logging
import sys
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import events
import pgqueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.executors import DatabaseRetryEntrypointExecutor
from pgqueuer.queries import Queries

SECOND = timedelta(seconds=1)


def retried(parameters):
    return DatabaseRetryEntrypointExecutor(parameters=parameters, max_attempts=25, initial_delay=SECOND / 10)


@asynccontextmanager
async def queuer():
    async with asyncpg.create_pool(events.URL, min_size=2, max_size=10) as pool:
        made = pgqueuer.PgQueuer.from_asyncpg_pool(pool)

        @made.entrypoint("work", executor_factory=retried)
        async def work(job):
            await events.work(**json.loads(job.payload), attempt=job.attempts)

        yield made


async def run_worker():
    await pgqueuer.run(
        queuer,
        dequeue_timeout=SECOND,
        batch_size=events.SLOTS // 2,  # it asks for at least twice as many tasks
        max_concurrent_tasks=events.SLOTS,
        heartbeat_timeout=3 * SECOND,
        shutdown_on_listener_failure=True,
    )


async def main(role):
    logging.basicConfig(level="INFO")
    if role == "worker":
        await run_worker()
        return
    queries = Queries(AsyncpgDriver(await asyncpg.connect(events.URL)))
    if role == "setup":
        await queries.install()
    else:
        payloads = [json.dumps({"number": n, "seconds": s}).encode() for n, s in events.jobs()]
        await queries.enqueue(["work"] * len(payloads), payloads, [0] * len(payloads))


asyncio.run(main(sys.argv[1]))
