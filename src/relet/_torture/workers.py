"""The worker processes of a run. A worker that has ended is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from .history import History
from .proxy import Proxies, Proxy
from .settings import VARIABLE, Settings

SLOTS = 8


class Workers:
    def __init__(self, settings: Settings, number: int, proxies: Proxies | None, history: History) -> None:
        self.number = number
        self._settings, self._history = settings, history
        self._proxies = [proxies.add() for _ in range(number)] if proxies is not None else []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._is_over = False
        self._watcher = threading.Thread(target=self._watch, name="torture-workers", daemon=True)

    def start(self) -> None:
        self._processes = [self._start(number) for number in range(self.number)]
        self._watcher.start()

    def pid(self, number: int) -> int:
        with self._lock:
            return self._processes[number].pid

    def proxy(self, number: int) -> Proxy:
        return self._proxies[number]

    def stop(self, seconds: float) -> list[int | None]:
        """Stop all workers in good order. Returns their exit codes; None: it had to be killed."""
        self._is_over = True
        self._watcher.join(10.0)
        for process in self._processes:
            for number in (signal.SIGCONT, signal.SIGTERM):
                with suppress(ProcessLookupError):
                    process.send_signal(number)
        return [_exit_code(process, seconds) for process in self._processes]

    def _watch(self) -> None:
        """Start workers again that have ended, however that was."""
        while not self._is_over:
            for number, process in enumerate(self._processes):
                code = process.poll()
                if code is not None and not self._is_over:
                    self._history.write("exit", worker=process.pid, code=code)
                    with self._lock:
                        self._processes[number] = self._start(number)
            time.sleep(0.05)

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        settings = self._settings
        if self._proxies:
            settings = structs.replace(settings, url=self._proxies[number].url)
        log = Path(settings.folder, f"worker{number}.log")
        command = [
            *(sys.executable, "-m", "relet", "worker", "relet._torture.shop:app"),
            *("--lease", str(settings.lease), "--concurrency", str(SLOTS), "--poll-interval", "0.2"),
            *("--shutdown-timeout", "3"),
        ]
        with log.open("ab") as file:
            process = subprocess.Popen(  # noqa: S603
                command, stdout=file, stderr=file, stdin=subprocess.DEVNULL,
                env={**os.environ, VARIABLE: str(settings.save(f"worker{number}"))},
            )  # fmt: skip
        self._history.write("started", worker=process.pid, number=number)
        return process


def _exit_code(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None
