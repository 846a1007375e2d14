"""CPU and memory as the kernel accounts for them, and a description of the machine. Linux; elsewhere figures are 0."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PROC = Path("/proc")
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 2**20


def cpu_seconds(pid: int) -> float:
    """CPU time of one process."""
    return sum(_cpu(pid)[:2])


def tree_seconds(pid: int) -> float:
    """CPU time of a process and of everything it ever started, as long as each of those was waited for."""
    return sum(_cpu(pid)) + sum(tree_seconds(child) for child in children(pid))


def _cpu(pid: int) -> tuple[float, ...]:
    """User, system, and the same of children that have ended; zeros if the process is gone."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return (0.0, 0.0, 0.0, 0.0)
    return tuple(int(field) / TICK for field in fields[11:15])


def precise_cpu_seconds(pid: int) -> float:
    """CPU time of a process with one thread, to the nanosecond where the kernel says so; else as above."""
    try:
        nanoseconds = int((PROC / str(pid) / "schedstat").read_text().split()[0])
    except (OSError, IndexError):
        return cpu_seconds(pid)
    return nanoseconds / 1e9 or cpu_seconds(pid)


def children(pid: int) -> list[int]:
    found: list[int] = []
    for path in (PROC / str(pid) / "task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += [int(child) for child in path.read_text().split()]
    return found


def resident_mib(pid: int) -> float:
    return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE / MIB


def busy_seconds() -> float:
    """CPU time of everything on this machine since it started."""
    try:
        fields = (PROC / "stat").read_text().split()[1:9]
    except OSError:
        return 0.0
    return sum(int(fields[field]) for field in (0, 1, 2, 5, 6, 7)) / TICK


class OtherWork:
    """How many cores other programs used since this was made."""

    def __init__(self) -> None:
        self._at, self._busy, self._ours = time.monotonic(), busy_seconds(), tree_seconds(os.getpid())

    def cores(self) -> float:
        others = busy_seconds() - self._busy - (tree_seconds(os.getpid()) - self._ours)
        return max(others, 0.0) / max(time.monotonic() - self._at, 0.001)


def facts() -> dict[str, Any]:
    """The machine and the versions that a figure depends on."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * PAGE / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "relet": package_version("relet"),
        "psycopg": package_version("psycopg"),
    }


def package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    info = PROC / "cpuinfo"
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
