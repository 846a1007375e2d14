"""The processes of a run: workers, producers, an operator and the HTTP API. One that has ended is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, structs

from .facts import REMOTE_WORKERS, SHUTDOWN_TIMEOUT, WORKERS
from .history import History
from .proxy import Proxies, Proxy
from .requests import TOKEN
from .settings import VARIABLE, Settings

SLOTS = 8
NO_DATABASE = "postgresql://none@127.0.0.1:1/none"  # of a process that must not need one


class Program(Struct, frozen=True):
    """`name`: as its log file is called."""

    name: str
    words: tuple[str, ...]  # those that follow `python -m`
    is_worker: bool = False
    is_remote: bool = False  # a worker that reaches the store by the gateways


def gateway_programs(urls: Sequence[str]) -> list[Program]:
    words = ("relet", "gateway", "relet._torture.shop:app", "--port")
    return [Program(f"gateway{number}", (*words, str(urlsplit(url).port))) for number, url in enumerate(urls)]


def worker_program(settings: Settings, number: int, tenant: str | None = None) -> Program:
    """A worker for the store, or for a tenant. Some reach the store by a gateway, if there are any."""
    is_remote = bool(settings.gateways) and tenant is None and number in REMOTE_WORKERS
    words = (
        *("relet", "worker", "relet._torture.shop:app", "--lease", str(settings.lease)),
        *(("--tenant", f"{tenant}={SLOTS}") if tenant else ("--concurrency", str(SLOTS))),
        *("--poll-interval", "0.2", "--shutdown-timeout", str(SHUTDOWN_TIMEOUT)),
    )
    name = f"{tenant}-{WORKERS}" if tenant else f"{WORKERS}{number}"
    return Program(name, words, is_worker=True, is_remote=is_remote)


class Processes:
    """Processes of a kind: one for each program."""

    def __init__(self, settings: Settings, programs: list[Program], proxies: Proxies | None, history: History) -> None:
        self.number = len(programs)
        self._settings, self._programs, self._history = settings, programs, history
        urls = [list(settings.gateways) if one.is_remote else [None] for one in programs]
        self._proxies = [list(map(proxies.add, some)) for some in urls] if proxies is not None else []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._is_over = False
        self._pauses = 0  # while there are any, no process is started again
        self._watcher = threading.Thread(target=self._watch, name="torture-processes", daemon=True)

    def start(self) -> None:
        self._processes = [self._start(number) for number in range(self.number)]
        self._watcher.start()

    def pid(self, number: int) -> int:
        with self._lock:
            return self._processes[number].pid

    def proxy(self, number: int, size: float = 0.0) -> Proxy:
        """A proxy of this process. One that uses several gateways has one for each of them."""
        found = self._proxies[number]
        return found[int(size * 1000) % len(found)]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Start no process again in this block, as on a machine that sleeps."""
        with self._lock:
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1

    def remote(self) -> list[int]:
        """The processes that reach the store by a gateway."""
        with self._lock:
            pairs = zip(self._programs, self._processes, strict=True)
            return [process.pid for program, process in pairs if program.is_remote]

    def clock(self, number: int) -> Path:
        """The file with the seconds by which the clock of a process is wrong."""
        return Path(self._settings.folder, f"clock-{self._programs[number].name}")

    def stop(self, seconds: float) -> None:
        """Stop all in good order. Those that do not stop within this time are killed."""
        if self._is_over:
            return
        self._is_over = True
        self._watcher.join(10.0)
        self._history.write("stopping", processes=[process.pid for process in self._processes])
        for process in self._processes:
            for number in (signal.SIGCONT, signal.SIGTERM):
                with suppress(ProcessLookupError):
                    process.send_signal(number)
        give_up, left = time.monotonic() + seconds, list(self._processes)
        while left and time.monotonic() < give_up:
            for process in [one for one in left if one.poll() is not None]:
                self._history.write("exit", process=process.pid, code=process.returncode)
                left.remove(process)
            time.sleep(0.02)
        for process in left:
            process.kill()
            process.wait()
            self._history.write("exit", process=process.pid, code=None)

    def _watch(self) -> None:
        """Start processes again that have ended, however that was."""
        while not self._is_over:
            for number, process in enumerate(self._processes):
                code = process.poll()
                with self._lock:
                    if code is not None and not self._is_over and not self._pauses:
                        self._history.write("exit", process=process.pid, code=code)
                        self._processes[number] = self._start(number)
            time.sleep(0.05)

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        program = self._programs[number]
        settings = structs.replace(self._settings, clock=str(self.clock(number)) if program.is_worker else "")
        words = program.words
        urls = [one.url for one in self._proxies[number]] if self._proxies else []
        if program.is_remote:
            settings = structs.replace(settings, url=NO_DATABASE, is_remote=True)
            words = (*words, *(word for url in urls or settings.gateways for word in ("--gateway", url)))
        elif urls:
            settings = structs.replace(settings, url=urls[0])
        with Path(settings.folder, f"{program.name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                # When the shell of a background job exits, the kernel continues the stopped processes of its group.
                process_group=0,
                env={
                    **os.environ, VARIABLE: str(settings.save(program.name)), "RELET_WEB_TOKEN": TOKEN,
                    "RELET_GATEWAY_TOKEN": TOKEN, "PYTHONFAULTHANDLER": "1",
                },
            )  # fmt: skip
        self._history.write("started", process=process.pid, program=program.name, is_remote=program.is_remote)
        return process
