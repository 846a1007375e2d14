"""SIGTERM, SIGINT and, on Windows, SIGBREAK, read from a pipe by a thread.

A signal handler in Python runs between two instructions of the main thread, which may hold any lock at that moment.
Here the signal handler does nothing. A thread that has no locks reads from a pipe which signals arrived.
"""

from __future__ import annotations

import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .._system import SYSTEM

#: SIGBREAK is Ctrl-Break, the one signal that another program can send to a process on Windows.
STOPS = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGINT", "SIGBREAK") if name in signal.Signals.__members__)

#: Signals within so many seconds count as one: the command `timeout` signals a process and then its process group.
AT_ONCE = 0.5
POLL = 0.2  # seconds until the thread notices that the worker has ended


class SignalPipe:
    """Receives SIGTERM and SIGINT once it is created. `others`: further signals that end `stops` early."""

    def __init__(self, *others: signal.Signals, at_once: float = AT_ONCE) -> None:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._wakeup_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, lambda *_: None) for number in (*STOPS, *others)}
        self._at_once = at_once
        self._counted = float("-inf")

    def stops(self, seconds: float | None = None) -> Iterator[signal.Signals]:
        """Wait for a signal, up to `seconds`. Yields SIGTERM and SIGINT; several at once count as one."""
        if select.select([self._reader], [], [], seconds)[0]:
            for number in self._reader.recv(64):
                if number in STOPS and SYSTEM.monotonic() - self._counted >= self._at_once:
                    self._counted = SYSTEM.monotonic()
                    yield signal.Signals(number)

    def ignore(self) -> None:
        """Ignore both signals, also while the interpreter shuts down and removes the handlers written in Python."""
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)

    def close(self) -> None:
        """Restore the handlers that were set before."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_fd)
        self._writer.close()
        self._reader.close()


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for each SIGTERM and SIGINT, in a thread. Only the main thread can change handlers: in another thread
    this does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals, over = SignalPipe(), SYSTEM.event()

    def watch() -> None:
        while not over.is_set():
            for _ in signals.stops(POLL):
                stop()

    watcher = SYSTEM.spawn("signals", watch)
    try:
        yield
    finally:
        over.set()
        watcher.join()
        signals.close()
