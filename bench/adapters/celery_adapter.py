"""celery on Redis: late acknowledgement, no results. The solo pool, so that calls are counted in this process."""

import logging
import os
import sys
import time

import wire
from celery import Celery

OPTIONS = ["--pool=solo", "--loglevel=CRITICAL", "--without-gossip", "--without-mingle", "--without-heartbeat"]
calls = wire.Calls()
app = Celery("bench", broker=os.environ["BENCH_REDIS"])
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=100,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,  # the driver reads what the worker prints
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop(account, cents):
    calls.succeed()


@app.task(name="stamp")
def stamp(sent):
    calls.arrive(sent)


@app.task(name="flaky", bind=True, max_retries=5)
def flaky(self, number):
    if calls.must_fail(number):
        raise self.retry(countdown=1)
    time.sleep(0.001)
    calls.finish()


def bulk(n):
    with app.producer_or_acquire() as producer:
        for _ in range(n):
            noop.apply_async(("acct-7", 500), producer=producer)


def flaky_many(numbers):
    for number in numbers:
        flaky.delay(number)


def main(role):
    logging.disable(logging.ERROR)
    if role == "setup":
        import redis

        redis.from_url(os.environ["BENCH_REDIS"]).flushdb()
    elif role == "worker":
        wire.serve_worker(calls)
        app.worker_main(["worker", *OPTIONS])
    else:
        wire.serve_producer(lambda: noop.delay("acct-7", 500), bulk, lambda sent: stamp.delay(sent), flaky_many)


main(sys.argv[1])
