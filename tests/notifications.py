"""A connection that receives the notifications of sleeping workers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg
import pytest


class Ear:
    """Counts notifications by the names that a test gives to channels."""

    def __init__(self, sql: psycopg.Connection[Any]) -> None:
        """`sql` commits each statement."""
        self._sql = sql
        self._names: dict[str, str] = {}
        self._end = f"end_{sql.info.backend_pid}"  # tests in other processes use the same database
        self._sql.execute(f"listen {self._end}".encode())

    def listen(self, channel: str, name: str) -> None:
        self._names[channel] = name
        self._sql.execute(f'listen "{channel}"'.encode())

    def heard(self) -> Counter[str]:
        """How many notifications each name received since the last call."""
        self._sql.execute(f"notify {self._end}".encode())
        heard = Counter[str]()
        for one in self._sql.notifies(timeout=60):
            if one.channel == self._end:
                return heard
            heard[self._names[one.channel]] += 1
        pytest.fail("the last notification did not arrive")
