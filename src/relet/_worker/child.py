"""A child process that runs handlers (`process=True`), one at a time.

It speaks to its worker in lines of JSON over two pipes. When the worker dies its pipe ends, and the child kills itself
and everything that its handlers have started. An abort is raised in the handler by a signal to its thread.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import os
import queue
import runpy
import signal
import sys
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import IO, Any

import msgspec

from .. import logs
from .._attempts.attempt import Attempt
from .._attempts.runtime import AttemptRuntime
from .._core.job import Claimed, Outcome, Progress, Raised, Released, Snoozed, Succeeded
from .._store.store import Store
from .._system import SYSTEM
from .._tasks.task import Task, TaskRegistry
from ..app import App
from ..errors import Aborted, UnknownTask
from .invoke import call_async, call_plain

MAIN = "__relet_main__"


class Setup(msgspec.Struct):
    """The first line that a child reads."""

    path: list[str]  # sys.path
    main: str | None  # the file of a program whose own module has tasks
    log_level: str
    log_json: bool


class Order(msgspec.Struct, omit_defaults=True):
    """What a worker says to its child: one of these."""

    module: str | None = None  # run a job: where its task is found
    job: Claimed | None = None
    tenant: str | None = None
    worker: str = ""
    token: str | None = None  # whom the following concerns
    context: str | None = None  # that the handler is to run in, where somebody follows it
    deadline: float | None = None  # the lease was renewed
    abort: str | None = None


class Answer(msgspec.Struct, omit_defaults=True):
    """What a child says: that the handler begins, how far it is, or what the attempt came to."""

    begun: bool = False
    completing: bool = False  # the handler completes the job in a transaction of its own
    progress: Progress | None = None
    kind: str | None = None
    outcome: msgspec.Raw = msgspec.Raw()


KINDS: Mapping[str, type[Outcome]] = {kind.__name__: kind for kind in (Succeeded, Raised, Snoozed, Released)}


class Child:
    """The child's side."""

    def __init__(self, orders: IO[bytes], answers: IO[bytes]) -> None:
        self._orders = orders
        self._answers = answers
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._attempt: Attempt | None = None
        self._renewed: tuple[str, float] | None = None  # token and deadline of what is not begun yet

    def work(self) -> None:
        """One job after another, in the main thread: signals are delivered there."""
        signal.signal(signal.SIGUSR1, self._raise)
        SYSTEM.thread("orders", self._listen).start()
        while True:
            order = self._jobs.get()
            outcome = self._run(order)
            self._say(Answer(kind=type(outcome).__name__, outcome=msgspec.Raw(msgspec.json.encode(outcome))))

    def _run(self, order: Order) -> Outcome:
        job = order.job
        assert job is not None and order.module is not None  # noqa: S101, PT018
        attempt = Attempt(job, order.deadline or 0.0, tenant=order.tenant, worker=order.worker)
        attempt._report = lambda said: self._say(Answer(progress=said))
        try:
            task = find_task(order.module, job.task)
            store = _store_of(task, order.tenant)
            AttemptRuntime(store, task, attempt, lambda: self._say(Answer(completing=True)))
            self._attempt = attempt
            if self._renewed is not None and self._renewed[0] == job.token:
                attempt.deadline = max(attempt.deadline, self._renewed[1])
            self._say(Answer(begun=True))
            try:
                if task.is_async:
                    return asyncio.run(_on_own_loop(task, attempt, store, order.context))
                return call_plain(task, attempt, task.app.middlewares, order.context)
            finally:
                self._attempt = None
        except Aborted as late:  # the signal came between the handler's end and ours
            return Released(f"aborted: {late.reason}")
        except Exception as error:
            return Raised(f"the process could not run {job.task}: {type(error).__name__}: {error}")

    def _listen(self) -> None:
        """Read orders while the handler runs. The end of the pipe is the end of the worker."""
        decoder = msgspec.json.Decoder(Order)
        for line in self._orders:
            order = decoder.decode(line)
            attempt = self._attempt
            if order.job is not None:
                self._jobs.put(order)
            elif attempt is None or attempt.job.token != order.token:
                if order.deadline is not None and order.token is not None:
                    self._renewed = order.token, order.deadline  # its module is being imported, or it has ended
            elif order.deadline is not None:
                attempt.deadline = order.deadline
            elif order.abort is not None:
                attempt.aborted = order.abort  # type: ignore[assignment]
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        os.killpg(0, signal.SIGKILL)

    def _raise(self, number: int, frame: object) -> None:
        if self._attempt is not None and self._attempt.aborted is not None:
            raise Aborted(self._attempt.aborted)

    def _say(self, answer: Answer) -> None:
        line = msgspec.json.encode(answer) + b"\n"
        with self._lock:
            self._answers.write(line)
            self._answers.flush()


def _die_with(leash: int) -> None:
    """Have the kernel kill this process and all of its group when the worker, who has the other end, is gone.

    A handler that holds Python's lock cannot prevent that. Elsewhere than on Linux the thread that listens must do.
    """
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(leash, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(leash, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(leash, fcntl.F_SETFL, fcntl.fcntl(leash, fcntl.F_GETFL) | os.O_ASYNC)


async def _on_own_loop(task: Task[..., Any], attempt: Attempt, store: Store, within: str | None) -> Outcome:
    try:
        return await call_async(task, attempt, task.app.middlewares, within)
    finally:
        store.leave_loop()


def _store_of(task: Task[..., Any], tenant: str | None) -> Store:
    """The store of the app that this process has imported."""
    assert isinstance(task.app, App)  # noqa: S101 - no other class makes tasks that a worker runs
    return task.app._store(tenant)


def find_task(module: str, name: str) -> Task[..., Any]:
    """The task of that name, by way of the module in which its function is."""
    there = _main_module() if module == "__main__" else importlib.import_module(module)
    for value in vars(there).values():
        if isinstance(value, TaskRegistry) and name in value.tasks:
            return value.tasks[name]
        if isinstance(value, Task) and value.app.tasks.get(name) is not None:
            return value.app.tasks[name]
    raise UnknownTask(
        f"{module} has no app with a task named {name}; process=True needs both at the module's top level"
    )


def _main_module() -> ModuleType:
    """The program's own file, under another name, so that it does not run as a program."""
    if MAIN not in sys.modules:
        module = sys.modules[MAIN] = ModuleType(MAIN)
        module.__dict__.update(runpy.run_path(sys.argv[0], run_name=MAIN))
    return sys.modules[MAIN]


def main(read_orders: int, write_answers: int, leash: int) -> None:
    """What a child does with the pipes that it was given."""
    for number in (read_orders, write_answers, leash):
        os.set_inheritable(number, False)  # not for what the handlers start
    _die_with(leash)
    orders, answers = os.fdopen(read_orders, "rb"), os.fdopen(write_answers, "wb")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the worker to deal with
    setup = msgspec.json.decode(orders.readline(), type=Setup)
    sys.path[:] = setup.path
    logs.configure(setup.log_level, as_json=setup.log_json)
    sys.argv[:] = [setup.main or sys.argv[0]]
    Child(orders, answers).work()
