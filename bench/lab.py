"""The values that all measurements of one run share: its options, and servers that start when they are first needed."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from bench import machine, places, server
from bench.places import Place, PostgresPlace
from bench.server import Postgres
from bench.systems import System


@dataclass(frozen=True)
class Options:
    quick: bool = False
    repeat: int | None = None
    only: tuple[str, ...] = ()  # systems
    dsn: str | None = None
    jobs: int | None = None
    without: tuple[str, ...] = ()  # parts of `all`
    scale: float | None = None  # of the store of `growth`
    keep: str | None = None  # its database


class Lab:
    """Servers, empty databases to copy, and sizes."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._stack = ExitStack()
        self._templates: dict[str, str] = {}

    @cached_property
    def postgres(self) -> Postgres:
        return self._stack.enter_context(server.postgres(self.options.dsn))

    @cached_property
    def redis(self) -> str | None:
        return self._stack.enter_context(server.redis())

    def size(self, full: int, quick: int) -> int:
        """How many: --jobs if given, otherwise by whether the run is a quick one."""
        return self.options.jobs or (quick if self.options.quick else full)

    def template(self, system: System) -> str:
        if system.schema not in self._templates:
            self._templates[system.schema] = places.make_template(system, self.postgres)
        return self._templates[system.schema]

    def place(self, system: System) -> Place:
        return places.open_place(system, self)

    def postgres_place(self, system: System, keep: str | None = None) -> PostgresPlace:
        return PostgresPlace(system, self, keep)

    def facts(self) -> dict[str, Any]:
        found = machine.facts()
        return found | (self.postgres.facts() if "postgres" in self.__dict__ else {})

    def close(self) -> None:
        if "postgres" in self.__dict__:
            for name in self._templates.values():
                self.postgres.drop(name)
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
