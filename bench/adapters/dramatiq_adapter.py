"""dramatiq on Redis; its worker runs in this process."""

import logging
import os
import sys
import time

import dramatiq
import wire
from dramatiq.brokers.redis import RedisBroker

calls = wire.Calls()
broker = RedisBroker(url=os.environ["BENCH_REDIS"])
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(account, cents):
    calls.succeed()


@dramatiq.actor
def stamp(sent):
    calls.arrive(sent)


@dramatiq.actor(max_retries=5, min_backoff=1000, max_backoff=1000)
def flaky(number):
    if calls.must_fail(number):
        raise ValueError("first attempt")
    time.sleep(0.001)
    calls.finish()


def repeat(actor, arguments):
    for values in arguments:
        actor.send(*values)


def main(role):
    logging.disable(logging.ERROR)
    if role == "setup":
        broker.client.flushdb()
    elif role == "worker":
        wire.serve_worker(calls)
        dramatiq.Worker(broker, worker_threads=int(os.environ.get("BENCH_CONCURRENCY", "8"))).start()
        while True:
            time.sleep(10)
    else:
        wire.serve_producer(
            lambda: noop.send("acct-7", 500),
            lambda n: repeat(noop, [("acct-7", 500)] * n),
            lambda sent: stamp.send(sent),
            lambda numbers: repeat(flaky, [(number,) for number in numbers]),
        )


main(sys.argv[1])
