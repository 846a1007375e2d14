"""Relet: a short lease, the rest by default."""

import asyncio
import logging
import sys

import events

from relet import App, Attempt, Worker

LEASE = 3.0
app = App(events.URL, defaults={"max_attempts": 25})


@app.task
async def work(attempt: Attempt, number: int, seconds: float) -> str:
    return await events.work(number, seconds, attempt.job.attempt)


def main(role):
    if role == "setup":
        app.client.migrate()
    elif role == "enqueue":
        app.client.enqueue_many([work.draft(number, seconds) for number, seconds in events.jobs()])
    else:
        logging.basicConfig(level="INFO")
        asyncio.run(Worker(app, concurrency=events.SLOTS, lease=LEASE).run())


if __name__ == "__main__":
    main(sys.argv[1])
