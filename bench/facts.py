"""What a figure is worth depends on where it was measured."""

from __future__ import annotations

import os
import platform
import sqlite3
from pathlib import Path
from typing import Any

SETTINGS = ("shared_buffers", "synchronous_commit", "fsync", "max_wal_size", "autovacuum")


def show_machine() -> None:
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    print(f"machine: {os.cpu_count()} x {_processor()}, {platform.system()} {platform.release()}, load {load}")
    print(f"python {platform.python_version()}, psycopg {_version('psycopg')}, sqlite {sqlite3.sqlite_version}")


def show_place(name: str, raw: Any) -> None:
    print()
    if name == "sqlite":
        mode, safety = (raw.execute(f"pragma {pragma}").fetchone()[0] for pragma in ("journal_mode", "synchronous"))
        print(f"SQLite: journal_mode {mode}, synchronous {('off', 'normal', 'full', 'extra')[safety]}")
        return
    version = raw.execute("show server_version").fetchone()[0]
    settings = [f"{setting} {raw.execute(f'show {setting}').fetchone()[0]}" for setting in SETTINGS]
    print(f"PostgreSQL {version}: {', '.join(settings)}")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{version(package)} ({version(f'{package}-binary')} binary)"
    except PackageNotFoundError:
        return version(package)
