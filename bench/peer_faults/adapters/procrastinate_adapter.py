"""procrastinate: heartbeats every second, and the periodic task of its guide "Retry stalled jobs", every two seconds.

That task has a priority: otherwise it would wait behind the backlog.
"""

import asyncio
import logging
import sys

import events
import procrastinate

HEARTBEAT, STALLED = 1.0, 3.0
connector = procrastinate.PsycopgConnector(conninfo=events.URL, min_size=1, max_size=10)
app = procrastinate.App(connector=connector)


@app.task(name="work", pass_context=True, retry=procrastinate.RetryStrategy(max_attempts=25, wait=0))
async def work(context, number, seconds):
    return await events.work(number, seconds, context.job.attempts)


@app.periodic(cron="* * * * * */2")
@app.task(queueing_lock="retry_stalled_jobs", pass_context=True, priority=100)
async def retry_stalled_jobs(context, timestamp):
    for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED):
        await app.job_manager.retry_job(job)


async def run_worker():
    await app.run_worker_async(
        concurrency=events.SLOTS,
        fetch_job_polling_interval=1.0,
        update_heartbeat_interval=HEARTBEAT,
        stalled_worker_timeout=STALLED,
    )


async def main(role):
    logging.basicConfig(level="INFO")
    async with app.open_async():
        if role == "setup":
            await app.schema_manager.apply_schema_async()
        elif role == "enqueue":
            await work.batch_defer_async(*[{"number": n, "seconds": s} for n, s in events.jobs()])
        else:
            await run_worker()


asyncio.run(main(sys.argv[1]))
