"""procrastinate on psycopg."""

import asyncio
import logging
import os
import sys

import procrastinate
import wire

CONCURRENCY = int(os.environ.get("BENCH_CONCURRENCY", "20"))
calls = wire.Calls()
connector = procrastinate.PsycopgConnector(conninfo=os.environ["BENCH_URL"], min_size=1, max_size=10)
app = procrastinate.App(connector=connector)


@app.task(name="noop")
async def noop(account, cents):
    calls.succeed()


@app.task(name="stamp")
async def stamp(sent):
    calls.arrive(sent)


@app.task(name="flaky", retry=procrastinate.RetryStrategy(max_attempts=5, wait=1))
async def flaky(number):
    if calls.must_fail(number):
        raise ValueError("first attempt")
    await asyncio.sleep(0.001)
    calls.finish()


async def setup():
    await app.schema_manager.apply_schema_async()


async def work():
    wire.serve_worker(calls)
    await app.run_worker_async(concurrency=CONCURRENCY, fetch_job_polling_interval=1.0, install_signal_handlers=False)


async def produce():
    await wire.serve_async_producer(
        lambda: noop.defer_async(account="acct-7", cents=500),
        lambda n: noop.batch_defer_async(*[{"account": "acct-7", "cents": 500}] * n),
        lambda sent: stamp.defer_async(sent=sent),
        lambda numbers: flaky.batch_defer_async(*[{"number": number} for number in numbers]),
    )


async def main(role):
    logging.disable(logging.ERROR)
    async with app.open_async():
        await {"setup": setup, "worker": work, "producer": produce}[role]()


asyncio.run(main(sys.argv[1]))
