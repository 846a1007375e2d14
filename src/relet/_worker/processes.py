"""Attempts in processes (`process=True`): a crash, or a handler that never ends, takes nothing with it but itself.

A child lives for as long as it behaves: one handler at a time, at most one child for each slot. It has a session of its
own, so that it can be killed together with everything that its handlers have started.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec

from .. import logs
from .._attempts.completion import Completion
from .._core.job import Outcome, Raised
from .._system import SYSTEM
from .._tasks.task import Task
from ..errors import InvalidInput
from .child import KINDS, Answer, Order, Setup
from .execution import Execution
from .executors import Begin, Threaded

log = logging.getLogger("relet.worker")

KILL_AFTER = 1.0  # seconds that an aborted handler has to end by itself


class InProcesses(Threaded):
    """Children, idle and at work, and the threads that wait for them."""

    def __init__(self, begin: Begin, began: Callable[[Execution], None]) -> None:
        super().__init__("relet-child", begin)
        self._began = began
        self._idle: list[ChildProcess] = []
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Kill the children that have nothing to do; those at work are killed by whoever aborts them."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.kill()

    def _call(self, run: Execution) -> Outcome:
        telemetry = run.task.app.telemetry
        if telemetry is None:
            return self._call_in(run, None)
        with telemetry.running(run.attempt) as watch:
            outcome = self._call_in(run, watch.handed_over())
            watch.ended(outcome)
        return outcome

    def _call_in(self, run: Execution, context: str | None) -> Outcome:
        try:
            child = self._child()
            outcome = child.run(run, context)
            self._take_back(child)
        except Exception as error:
            log.exception("%s %s: the child process failed", run.task.name, run.job.id, extra=run.log_fields)
            return Raised(f"worker lost: the child process failed: {type(error).__name__}: {error}")
        return outcome

    def _child(self) -> ChildProcess:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return ChildProcess(self._began)

    def _take_back(self, child: ChildProcess) -> None:
        with self._lock:
            if child.is_usable and not self._closed:
                self._idle.append(child)
                return
        child.kill()


class ChildProcess:
    """The worker's side of one child."""

    def __init__(self, began: Callable[[Execution], None]) -> None:
        self._began = began  # to be told when a handler begins: starting a child takes a while
        read_orders, self._orders = os.pipe()
        self._answers, write_answers = os.pipe()
        os.set_blocking(self._orders, False)
        self._lock = threading.Lock()
        self._killer: threading.Timer | None = None
        self._spoilt = False  # it was aborted, and may have left something behind
        pipes = (read_orders, write_answers, leash())
        try:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", f"from relet._worker.child import main; main{pipes}"],
                pass_fds=pipes,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(read_orders)
            os.close(write_answers)
        self._order(Setup(sys.path, _main_file(), *logs.configured()))

    @property
    def is_usable(self) -> bool:
        """Whether another handler may run in it."""
        return not self._spoilt and self._process.poll() is None

    def run(self, run: Execution, context: str | None) -> Outcome:
        """Have it run a job; returns what that came to, even if it comes to the child's death."""
        attempt, token = run.attempt, run.job.token
        order = Order(
            module=run.task.__module__, job=run.job, tenant=attempt.tenant, worker=attempt.worker, context=context,
            deadline=attempt.deadline,
        )  # fmt: skip
        self._order(order)
        run.on_renewed = lambda: self._mention(Order(token=token, deadline=attempt.deadline))
        run.interrupt = self._abort
        if attempt.aborted is not None:
            self._abort(run)
        try:
            decoder = msgspec.json.Decoder(Answer)
            for line in self._lines():
                answer = decoder.decode(line)
                if answer.begun:
                    self._began(run)
                if answer.completing:
                    attempt._completion = Completion(attempt._completion.result or "")
                if answer.progress is not None:
                    attempt._report(answer.progress)
                if answer.kind is not None:
                    return msgspec.json.decode(answer.outcome, type=KINDS[answer.kind])
        finally:
            run.on_renewed = run.interrupt = None
        self.kill()
        return Raised(f"worker lost: its process {_cause(self._process.wait())}")

    def kill(self) -> None:
        """Kill it, with all that it has started and that has not run away from it."""
        self._kill_group()
        if self._killer is not None:
            self._killer.cancel()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        with self._lock:
            for pipe in (self._orders, self._answers):
                if pipe >= 0:
                    os.close(pipe)
            self._orders = self._answers = -1

    def _lines(self) -> Iterator[bytes]:
        """What it says until it is gone. Not until the pipe ends: something that it started may hold that open."""
        read = select.poll()
        read.register(self._answers, select.POLLIN)
        said = b""
        while True:
            if read.poll(1000):
                chunk = os.read(self._answers, 65536)
                if not chunk:
                    return
                *lines, said = (said + chunk).split(b"\n")
                yield from lines
            elif self._process.poll() is not None:
                return

    def _abort(self, run: Execution) -> None:
        """Ask it to stop; kill it if it does not."""
        self._spoilt = True
        if self._killer is None:
            self._killer = SYSTEM.timer(KILL_AFTER, self._kill_group)
            self._killer.start()
        self._mention(Order(token=run.job.token, abort=run.attempt.aborted))

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _order(self, message: msgspec.Struct) -> None:
        """Something that it must hear. A child that is gone hears nothing, which shows where its answer is awaited."""
        left = memoryview(msgspec.json.encode(message) + b"\n")
        write = select.poll()
        with self._lock, suppress(BrokenPipeError):
            write.register(self._orders, select.POLLOUT)
            while left and self._process.poll() is None:
                if write.poll(1000):
                    with suppress(BlockingIOError):
                        left = left[os.write(self._orders, left) :]

    def _mention(self, message: msgspec.Struct) -> None:
        """Something that it may miss: whoever says it, the heartbeat among others, must not wait for the child."""
        if self._lock.acquire(blocking=False):
            try:
                with suppress(OSError):  # a line as short as this goes whole, or not at all
                    os.write(self._orders, msgspec.json.encode(message) + b"\n")
            finally:
                self._lock.release()


@cache
def leash() -> int:
    """The end of a pipe that children hold. The other is ours alone, and ends with us, however we end."""
    held, _ = os.pipe()
    return held


def check_importable(task: Task[..., Any]) -> None:
    """Refuse a task that a child process could not find."""
    if task.process and "<locals>" in task.__qualname__:
        raise InvalidInput(
            f"task {task.name} has process=True, but {task.__qualname__} is made inside a function, where another "
            "process cannot import it: move it, and its app, to the top level of a module"
        )


def _main_file() -> str | None:
    """The program's own file, if tasks may be defined in it."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return None if spec is not None else getattr(main, "__file__", None)


def _cause(code: int) -> str:
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"exited with code {code}"
