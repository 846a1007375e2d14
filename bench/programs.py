"""Child processes that run an adapter: workers and producers, driven over their standard input and output."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.environments import CACHE, NODE, ROOT
from bench.systems import System

START_WITHIN = 60.0


class Stuck(Exception):
    """A system ended, stopped making progress, or did something else than asked."""


@dataclass(frozen=True)
class Counts:
    """The latest report of a worker. `first` and `last`: times of handler calls."""

    calls: int = 0
    successes: int = 0
    first: float = 0.0
    last: float = 0.0


class Program:
    """One adapter in one role, ready to take commands."""

    def __init__(self, system: System, role: str, env: Mapping[str, str]) -> None:
        self.counts = Counts()
        self._log = _log_of(system, role)
        self._lines: queue.Queue[str] = queue.Queue()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*system.command(), role],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(system, env),
                cwd=ROOT,
                text=True,
                bufsize=1,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if role != "setup":
            self._line(START_WITHIN)

    @property
    def pid(self) -> int:
        return self._process.pid

    def go(self) -> None:
        """Let a worker begin."""
        self._send("go")

    def ask(self, command: str, within: float = 600.0) -> float:
        """Have a producer do something; returns the seconds that it took, as it measured them."""
        self._send(command)
        return float(json.loads(self._line(within))["seconds"])

    def begin(self, command: str) -> None:
        """The same without waiting for the answer."""
        self._send(command)

    def latencies(self) -> list[float]:
        """End a worker; returns its latencies in milliseconds, in order of arrival."""
        self._send("end")
        found: list[float] = json.loads(self._line(30.0))["latencies"]
        return found

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # an unsent request cannot be sent any more
                stream.close()  # type: ignore[union-attr]

    def wait(self) -> None:
        """Until it has ended without an error."""
        if self._process.wait(START_WITHIN) != 0:
            raise Stuck(f"{self._log.name}: {self._tail()}")

    def has_ended(self) -> bool:
        return self._process.poll() is not None and not self._reader.is_alive()

    def check(self) -> None:
        if self._process.poll() is not None:
            raise Stuck(f"{self._log.name} ended: {self._tail()}")

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{"calls"'):
                self.counts = Counts(**json.loads(line))
            else:
                self._lines.put(line)
        self._lines.put("")

    def _line(self, within: float) -> str:
        try:
            line = self._lines.get(timeout=within)
        except queue.Empty:
            raise Stuck(f"no answer within {within:.0f} s; {self._log.name}: {self._tail()}") from None
        if not line:
            self._process.wait()
            raise Stuck(f"{self._log.name} ended: {self._tail()}")
        return line

    def _tail(self) -> str:
        return self._log.read_text(errors="replace").strip()[-500:] or "it printed nothing"


def _log_of(system: System, role: str) -> Path:
    folder = CACHE / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{system.name.replace(' ', '-')}-{role}.log"


def _environment(system: System, env: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("BENCH_", "RELET_"))}
    own = {"PYTHONUNBUFFERED": "1", "BENCH_NODE_MODULES": str(NODE.folder)}
    return {**inherited, **own, **system.env, **env}


def wait_until(condition: Callable[[], Any], within: float, what: str, pause: float = 0.005) -> None:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise Stuck(f"not within {within:.0f} s: {what}")
        time.sleep(pause)
