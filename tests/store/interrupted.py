"""Interrupts at random points of a program that uses its store; after each, all threads and processes can write.

For long runs: `python -m tests.store.interrupted URL SCHEMA NUMBER SEED`.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import logging
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from relet import App
from relet._store.flows import enqueue
from relet._store.interrupts import leave
from relet._store.pool import Pool
from relet._store.postgres import PostgresStore
from relet._store.sqlite import SQLiteStore

LONGEST = 0.006  # seconds until an interrupt: a few writes
TIMEOUT = 60.0
HANGS = 100.0  # seconds after which a run does not end any more


class Bang(Exception):
    """An exception that a signal handler may raise: not only BaseException itself."""


def make(url: str, schema: str) -> tuple[App, Any]:
    app = App(url, schema=schema)

    @app.task
    def work(n: int) -> None: ...

    return app, work


def answer(url: str, schema: str) -> None:
    """Another process: a write for each line."""
    logging.disable(logging.WARNING)
    _, work = make(url, schema)
    for line in sys.stdin:
        work.enqueue(int(line))
        print("written", flush=True)


class InterruptedProgram:
    """A program that is interrupted."""

    def __init__(self, url: str, schema: str, seed: int) -> None:
        self.app, self.work = make(url, schema)
        self.store = self.app._store()
        self.dice = random.Random(seed)
        self.armed: type[BaseException] | None = None
        self.interrupted: Counter[str] = Counter()
        self.strays: list[BaseException] = []  # interrupts that were raised in the wrong thread
        self.stop = threading.Event()
        self.acknowledged = 0
        command = [sys.executable, "-m", "tests.store.interrupted", url, schema]
        self.other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def enqueue(self) -> None:
        self.work.enqueue(1)
        self.acknowledged += 1

    def enqueue_many(self) -> None:
        self.app.client.enqueue_many([self.work.draft(n) for n in range(10)])
        self.acknowledged += 10

    def transaction(self) -> None:
        block = self.store.transaction()
        try:
            with block as opened:
                opened.run(enqueue.enqueue, [self.work.draft(1)])
            self.acknowledged += 1
        finally:
            leave(block)  # as the worker does for a handler that has ended

    def read(self) -> None:
        self.app.client.jobs(limit=3)

    def forever(self) -> None:
        while True:
            self.dice.choice([self.enqueue, self.enqueue, self.enqueue_many, self.transaction, self.read])()

    def bystander(self) -> None:
        """A thread that is not interrupted, whose writes are grouped with others."""
        try:
            while not self.stop.wait(0.001):
                self.work.enqueue(2)
        except BaseException as error:
            self.strays.append(error)

    def by_signal(self) -> None:
        """Interrupt the main thread."""
        try:
            signal.setitimer(signal.ITIMER_REAL, self.dice.uniform(0.00001, LONGEST), 0.1)
            self.armed = self.dice.choice([KeyboardInterrupt, Bang])
            self.forever()
        except (KeyboardInterrupt, Bang) as error:
            self.armed = None
            self.interrupted[type(error).__name__] += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def in_thread(self) -> None:
        """Interrupt another thread."""
        ended: list[BaseException] = []

        def live() -> None:
            try:
                self.forever()
            except BaseException as error:
                ended.append(error)

        thread = threading.Thread(target=live, daemon=True)
        thread.start()
        time.sleep(self.dice.uniform(0.00001, LONGEST))
        while thread.is_alive():  # an exception that is raised in a destructor goes no further
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Bang))
            thread.join(0.5)
        self.strays += [error for error in ended if not isinstance(error, Bang)]
        self.interrupted["in another thread"] += 1

    def all_can_write(self) -> None:
        """This thread, another thread, another process."""
        self.enqueue()
        thread = threading.Thread(target=self.enqueue, daemon=True)
        thread.start()
        thread.join(TIMEOUT)
        assert not thread.is_alive(), "another thread cannot write"
        assert self.other.stdin is not None
        assert self.other.stdout is not None
        print(1, file=self.other.stdin, flush=True)
        assert self.other.stdout.readline() == "written\n", "another process cannot write"

    def on_alarm(self, number: int, frame: FrameType | None) -> None:
        if self.armed is not None:
            raise self.armed

    def run(self, number: int) -> None:
        signal.signal(signal.SIGALRM, self.on_alarm)
        self.all_can_write()
        bystander: threading.Thread | None = None
        ways: list[Callable[[], None]] = [self.by_signal, self.by_signal, self.in_thread]
        for n in range(number):
            if n == number // 2:  # first without, then with a concurrent writer
                bystander = threading.Thread(target=self.bystander, daemon=True)
                bystander.start()
            ways[n % 3]()
            self.all_can_write()
        self.stop.set()
        if bystander is not None:
            bystander.join(TIMEOUT)
        assert self.strays == []
        gc.collect()
        assert [pool._slots.qsize() for pool in self.pools()] == [pool._limit for pool in self.pools()]
        assert self.app.client.count() >= self.acknowledged
        self.other.communicate()
        assert self.other.returncode == 0

    def pools(self) -> list[Pool[Any]]:
        if isinstance(self.store, PostgresStore):
            return [self.store._server.pool, self.store._server.handler_pool]
        assert isinstance(self.store, SQLiteStore)
        return [self.store._readers, self.store._handler_pool]


def main() -> None:
    url, schema, *rest = sys.argv[1:]
    if not rest:
        answer(url, schema)
        return
    logging.disable(logging.WARNING)
    faulthandler.dump_traceback_later(HANGS, exit=True)  # before the test that started this is ended
    began = time.monotonic()
    program = InterruptedProgram(url, schema, int(rest[1]))
    program.app.client.migrate()
    program.run(int(rest[0]))
    print(f"{dict(program.interrupted)}: all could write after each, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
