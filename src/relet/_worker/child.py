"""A child process that runs handlers (`process=True`), one at a time.

Worker and child exchange lines of JSON over two pipes. When the worker dies, the system closes its ends of the pipes,
and the child kills itself and every process that its handlers have started. To abort a handler, the child sends a
signal to its main thread, where the signal handler raises `Aborted`.
"""

from __future__ import annotations

import asyncio
import contextvars
import fcntl
import importlib
import logging
import os
import queue
import runpy
import signal
import sys
import threading
from collections.abc import Coroutine, Mapping
from types import ModuleType
from typing import IO, Any, TypeVar

import msgspec

from .. import logs
from .._attempts.attempt import Attempt
from .._attempts.runtime import AttemptRuntime
from .._core.job import Outcome, Raised, Released
from .._core.text import type_name
from .._remote.channel import Gateways
from .._remote.store import RemoteStore, Session
from .._store.store import Store
from .._system import SYSTEM
from .._tasks.task import Task, TaskRegistry
from ..app import App
from ..errors import Aborted, UnknownTask
from .child_messages import Command, Reply, Setup
from .invoke import call_async, call_plain
from .resources import ResourceValues

R = TypeVar("R")

MAIN = "__relet_main__"


class Child:
    """The child's end of the pipes. Its main thread runs handlers; another thread reads commands."""

    def __init__(self, commands: IO[bytes], replies: IO[bytes], setup: Setup) -> None:
        self._gateways = Gateways(setup.gateways, setup.gateway_token) if setup.gateways else None
        self._commands = commands
        self._replies = replies
        self._lock = SYSTEM.lock()
        self._jobs: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._attempt: Attempt | None = None
        self._renewed: tuple[str, float] | None = None  # token and deadline of a job that has not begun
        self._resources: dict[TaskRegistry, ResourceValues] = {}
        self._runner: asyncio.Runner | None = None  # the event loop of async resources

    def work(self) -> None:
        """Run one job after another, in the main thread, because Python delivers signals there."""
        signal.signal(signal.SIGUSR1, self._raise_aborted)
        SYSTEM.thread("commands", self._read_commands).start()
        while not (command := self._jobs.get()).end:
            outcome = self._run(command)
            self._send(Reply(kind=type(outcome).__name__, outcome=msgspec.Raw(msgspec.json.encode(outcome))))
        for values in self._resources.values():
            values.close()

    def _run(self, command: Command) -> Outcome:
        job = command.job
        assert job is not None
        assert command.module is not None
        attempt = Attempt(job, command.deadline or 0.0, tenant=command.tenant, worker=command.worker)
        attempt._report = lambda progress: self._send(Reply(progress=progress))
        try:
            task = find_task(command.module, job.task)
            store = self._store_of(task, command)
            AttemptRuntime(store, task, attempt, lambda: self._send(Reply(completing=True)))
            attempt._resources = self._made_resources(task)
            self._attempt = attempt
            if self._renewed is not None and self._renewed[0] == job.token:
                attempt.deadline = max(attempt.deadline, self._renewed[1])
            self._send(Reply(begun=True))
            try:
                if task.is_async:
                    return self._run_on_loop(_run_async(task, attempt, store, command.context))
                return call_plain(task, attempt, task.app.middlewares, command.context)
            finally:
                self._attempt = None
        except Aborted as late:  # the signal came after the handler had ended
            return Released(f"aborted: {late.reason}")
        except Exception as error:
            why = f"the process could not run {job.task}: {type(error).__name__}: {error}"
            return Raised(why, error_type=type_name(type(error)))

    def _store_of(self, task: Task[..., Any], command: Command) -> Store:
        """The store of the app that this process has imported, or the one behind the worker's gateway."""
        assert isinstance(task.app, App)
        if self._gateways is None or command.job is None:
            return task.app._store(command.tenant)
        session = Session(self._gateways, command.worker)
        session.hold(command.job)
        return RemoteStore(session)

    def _made_resources(self, task: Task[..., Any]) -> Mapping[Any, Any] | None:
        """The resources that the handler takes, made in this process when the first handler takes them."""
        if not task.app._resources:
            return None
        values = self._resources.setdefault(task.app, ResourceValues(self._run_on_lasting_loop))
        values.make(task.app._resources.for_child(task.signature))
        return values.by_kind

    def _run_on_lasting_loop(self, call: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine of an async resource. Handlers run on the same event loop from then on."""
        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(call)

    def _run_on_loop(self, call: Coroutine[Any, Any, R]) -> R:
        if self._runner is None:
            return asyncio.run(call)
        try:
            return self._runner.run(call, context=contextvars.copy_context())
        except Aborted:  # this child runs no other handler
            self._runner.close()
            raise

    def _read_commands(self) -> None:
        """Read commands, also while a handler runs. When the worker has died, the pipe ends: kill the process group."""
        decoder = msgspec.json.Decoder(Command)
        for line in self._commands:
            command = decoder.decode(line)
            attempt = self._attempt
            if command.job is not None or command.end:
                self._jobs.put(command)
            elif attempt is None or attempt.job.token != command.token:
                if command.deadline is not None and command.token is not None:
                    self._renewed = command.token, command.deadline  # the job has not begun, or it has ended
            elif command.deadline is not None:
                attempt.deadline = command.deadline
            elif command.abort is not None:
                attempt.aborted = command.abort  # type: ignore[assignment]
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        os.killpg(0, signal.SIGKILL)

    def _raise_aborted(self, number: int, frame: object) -> None:
        if self._attempt is not None and self._attempt.aborted is not None:
            raise Aborted(self._attempt.aborted)

    def _send(self, reply: Reply) -> None:
        line = msgspec.json.encode(reply) + b"\n"
        with self._lock:
            self._replies.write(line)
            self._replies.flush()


def _kill_with_worker(worker_pipe: int) -> None:
    """Have the kernel kill this process group when the worker dies, which has the other end of the pipe.

    This works even if a handler never releases the GIL. Only Linux can do it. On other systems the thread that reads
    commands kills the group.
    """
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(worker_pipe, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(worker_pipe, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(worker_pipe, fcntl.F_SETFL, fcntl.fcntl(worker_pipe, fcntl.F_GETFL) | os.O_ASYNC)


async def _run_async(task: Task[..., Any], attempt: Attempt, store: Store, within: str | None) -> Outcome:
    try:
        return await call_async(task, attempt, task.app.middlewares, within)
    finally:
        store.leave_loop()


def find_task(module: str, name: str) -> Task[..., Any]:
    """Import the module that defines a task's function, and find the task in it or in its app."""
    imported = _main_module() if module == "__main__" else importlib.import_module(module)
    for value in vars(imported).values():
        registry = value.app if isinstance(value, Task) else value
        if isinstance(registry, TaskRegistry) and name in registry._tasks_by_any_name:
            return registry.lookup(name)
    raise UnknownTask(
        f"{module} has no app with a task named {name}; process=True needs both at the module's top level"
    )


def _main_module() -> ModuleType:
    """Import the file of the program under another name, so that its `__main__` block does not run."""
    if MAIN not in sys.modules:
        module = sys.modules[MAIN] = ModuleType(MAIN)
        module.__dict__.update(runpy.run_path(sys.argv[0], run_name=MAIN))
    return sys.modules[MAIN]


def main(read_commands: int, write_replies: int, worker_pipe: int) -> None:
    """Run the child on these file descriptors, which it has inherited from the worker."""
    for number in (read_commands, write_replies, worker_pipe):
        os.set_inheritable(number, False)  # programs that handlers start must not keep them open
    _kill_with_worker(worker_pipe)
    commands, replies = os.fdopen(read_commands, "rb"), os.fdopen(write_replies, "wb")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker handles Ctrl-C
    setup = msgspec.json.decode(commands.readline(), type=Setup)
    sys.path[:] = setup.path
    logs.configure(setup.log_level, as_json=setup.log_json)
    sys.argv[:] = [setup.main or sys.argv[0]]
    Child(commands, replies, setup).work()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)  # threads that handlers have started do not delay the exit
