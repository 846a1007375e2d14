"""Attempts in child processes (`process=True`): the worker survives a handler that crashes or never ends.

A child runs one handler at a time, and there is at most one child for each slot. It is used again until a handler in it
was aborted. Each child leads its own session, so that the worker can kill it together with every process that its
handlers have started.
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
from .._remote.channel import Gateways
from .._system import HAS_PROCESS_GROUPS, SYSTEM, Event
from .._tasks.task import Task
from ..errors import InvalidInput
from .child_messages import KINDS, Command, Reply, Setup
from .execution import Execution
from .executors import Begin, Threaded

log = logging.getLogger("relet.worker")

CLOSE_TIMEOUT = 10.0  # seconds that a process has to close its resources
KILL_AFTER = 1.0  # seconds that an aborted handler has to end by itself


class InProcesses(Threaded):
    """The child processes, idle and busy. A thread waits for each busy one."""

    def __init__(self, begin: Begin, began: Callable[[Execution], None], hurry: Event) -> None:
        super().__init__("relet-child", begin)
        self._began = began
        self._hurry = hurry  # is set when the worker is to stop at once
        self._idle: list[ChildProcess] = []
        self._lock = SYSTEM.lock()
        self._closed = False
        self.gateways: Gateways | None = None  # by which handlers reach the store, if not by its URL

    def close(self) -> None:
        """End the idle children, once they have closed their resources. Busy ones are killed when aborted."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        self._end(idle)

    def _end(self, children: list[ChildProcess]) -> None:
        give_up = SYSTEM.monotonic() + CLOSE_TIMEOUT
        for child in children:
            child.request_end()
        for child in children:
            child.end(give_up, self._hurry)

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
        return ChildProcess(self._began, self.gateways)

    def _take_back(self, child: ChildProcess) -> None:
        with self._lock:
            if child.is_usable and not self._closed:
                self._idle.append(child)
                return
        if child.is_usable:
            self._end([child])
        else:
            child.kill()


class ChildProcess:
    """The worker's end of the pipes to one child."""

    def __init__(self, began: Callable[[Execution], None], gateways: Gateways | None = None) -> None:
        self._began = began  # called when a handler begins: the start of a child takes a while
        read_commands, self._commands = os.pipe()
        self._replies, write_replies = os.pipe()
        os.set_blocking(self._commands, False)
        self._lock = SYSTEM.lock()
        self._killer: threading.Timer | None = None
        self._has_resources = False  # it may have resources to close
        self._was_aborted = False  # its handler was aborted, and may have left threads or files behind
        pipes = (read_commands, write_replies, worker_pipe())
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from relet._worker.child import main; main{pipes}"],
                pass_fds=pipes,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(read_commands)
            os.close(write_replies)
        setup = Setup(sys.path, _main_file(), *logs.configured())
        if gateways is not None:
            setup.gateways = [one.where for one in gateways.addresses]
            setup.gateway_token = gateways.token
        self._send(setup)

    @property
    def is_usable(self) -> bool:
        """Whether another handler may run in it."""
        return not self._was_aborted and self._process.poll() is None

    def run(self, run: Execution, context: str | None) -> Outcome:
        """Have the child run a job, and return the outcome. If the child dies, the attempt has failed."""
        attempt, token = run.attempt, run.job.token
        self._has_resources = self._has_resources or bool(run.task.app._resources)
        command = Command(
            module=run.task.__module__, job=run.job, tenant=attempt.tenant, worker=attempt.worker, context=context,
            deadline=attempt.deadline,
        )  # fmt: skip
        self._send(command)
        run.on_renewed = lambda: self._send_unless_busy(Command(token=token, deadline=attempt.deadline))
        run.interrupt = self._abort
        if attempt.aborted is not None:
            self._abort(run)
        try:
            decoder = msgspec.json.Decoder(Reply)
            for line in self._lines():
                reply = decoder.decode(line)
                if reply.begun:
                    self._began(run)
                if reply.completing:
                    attempt._completion = Completion(attempt._completion.result or "")
                if reply.progress is not None:
                    attempt._report(reply.progress)
                if reply.kind is not None:
                    return msgspec.json.decode(reply.outcome, type=KINDS[reply.kind])
        finally:
            run.on_renewed = run.interrupt = None
        self.kill()
        return Raised(f"worker lost: its process {_cause(self._process.wait())}")

    def request_end(self) -> None:
        """Have the child close its resources, if it has any, and exit."""
        if self._has_resources:
            self._send_unless_busy(Command(end=True))

    def end(self, give_up: float, hurry: Event) -> None:
        """Kill a child once it has closed its resources, if it has any; at `give_up` or in a hurry at the latest."""
        while self._has_resources and self._process.poll() is None:
            if hurry.is_set() or SYSTEM.monotonic() >= give_up:
                log.error("A child process has not closed its resources in time: killing it")
                break
            SYSTEM.sleep(0.01)
        self.kill()

    def kill(self) -> None:
        """Kill the child and the rest of its process group."""
        self._kill_group()
        if self._killer is not None:
            self._killer.cancel()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        with self._lock:
            for pipe in (self._commands, self._replies):
                if pipe >= 0:
                    os.close(pipe)
            self._commands = self._replies = -1

    def _lines(self) -> Iterator[bytes]:
        """The lines that the child writes until it exits. A process that it has forked may keep the pipe open."""
        read = select.poll()
        read.register(self._replies, select.POLLIN)
        incomplete = b""
        while True:
            if read.poll(1000):
                chunk = os.read(self._replies, 65536)
                if not chunk:
                    return
                *lines, incomplete = (incomplete + chunk).split(b"\n")
                yield from lines
            elif self._process.poll() is not None:
                return

    def _abort(self, run: Execution) -> None:
        """Have `Aborted` raised in the handler; kill the child if the handler does not end soon."""
        self._was_aborted = True
        if self._killer is None:
            self._killer = SYSTEM.timer(KILL_AFTER, self._kill_group)
            self._killer.start()
        self._send_unless_busy(Command(token=run.job.token, abort=run.attempt.aborted))

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _send(self, message: msgspec.Struct) -> None:
        """Write a line, and wait until all of it is written. If the child has died, `_lines` notices."""
        left = memoryview(msgspec.json.encode(message) + b"\n")
        write = select.poll()
        with self._lock, suppress(BrokenPipeError):
            write.register(self._commands, select.POLLOUT)
            while left and self._process.poll() is None:
                if write.poll(1000):
                    with suppress(BlockingIOError):
                        left = left[os.write(self._commands, left) :]

    def _send_unless_busy(self, message: msgspec.Struct) -> None:
        """Write a line, or drop it if the pipe is full or in use: the heartbeat must not wait for a child."""
        if self._lock.acquire(blocking=False):
            try:
                with suppress(OSError):  # a line this short is written whole, or not at all
                    os.write(self._commands, msgspec.json.encode(message) + b"\n")
            finally:
                self._lock.release()


@cache
def worker_pipe() -> int:
    """The read end of a pipe, for all children. Only this process has the write end, so the pipe ends when it dies."""
    read_end, _ = os.pipe()
    return read_end


def check_process(task: Task[..., Any]) -> None:
    """Raise InvalidInput for a task that a child process could not run."""
    if task.process and not HAS_PROCESS_GROUPS:
        raise InvalidInput(
            f"task {task.name} has process=True, which needs Linux or macOS: remove it, and a thread runs the handler"
        )
    if task.process and "<locals>" in task.__qualname__:
        raise InvalidInput(
            f"task {task.name} has process=True, but {task.__qualname__} is made inside a function, where another "
            "process cannot import it: move it, and its app, to the top level of a module"
        )


def _main_file() -> str | None:
    """The file of the program, if it was started as one (`python shop.py`): tasks may be defined in it."""
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
