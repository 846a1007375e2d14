"""Schedules of one store: `client.schedules`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._core import validate
from .._core.codecs import Codecs
from .._core.decoding import decodable
from .._core.job import Draft, Job
from .._core.schedule import Missed, Overlap, ScheduleInfo, Tick, define
from .._store.flows import schedules
from .._store.query import Flow
from .._tasks.task import new_id
from .._threads import read_in_thread, write_in_thread
from .audit import AuditAction, AuditedStore

T = TypeVar("T")


class Schedules:
    """Reads and changes the schedules of one store. `app.schedule` declares schedules in code."""

    def __init__(self, store: AuditedStore, codecs: Codecs | None = None) -> None:
        self._store = store
        self._codecs = codecs

    def all(self) -> list[ScheduleInfo]:
        """All schedules, by name."""
        return decodable(self._store.read(schedules.schedules), self._codecs)

    def get(self, name: str, /) -> ScheduleInfo | None:
        """One schedule as it is now; None if there is none."""
        found = self._store.read(schedules.schedules, _name(name))
        return decodable(found[0], self._codecs) if found else None

    def put(
        self,
        name: str,
        draft: Draft[Any],
        cron: str | None = None,
        /,
        *,
        every: float | None = None,
        timezone: str = "UTC",
        missed: Missed = "once",
        overlap: Overlap = "allow",
    ) -> ScheduleInfo:
        """Add a schedule, or change the one of that name: `put("nightly", sweep.draft(), "0 3 * * *")`.

        Workers follow it from now on. If code declares it too, this change stays until the declaration changes.
        """
        definition = define(draft, cron, every, timezone, missed, overlap)
        return self._change("put", schedules.put, name, definition)

    def pause(self, name: str, /) -> ScheduleInfo:
        """Stop its ticks until it is resumed."""
        return self._change("pause", schedules.pause, name)

    def resume(self, name: str, /) -> ScheduleInfo:
        """Start its ticks again, with the next one."""
        return self._change("resume", schedules.resume, name)

    def run_now(self, name: str, /) -> Job[Any]:
        """Enqueue its job now, in addition to its ticks."""
        return self._change("run_now", schedules.run_now, name, new_id())

    def remove(self, name: str, /) -> None:
        """Delete it. Its jobs stay. A schedule that code declares is stored again when a worker starts."""
        self._change("remove", schedules.remove, name)

    def ticks(self, name: str, /, *, limit: int = 50) -> list[Tick]:
        """Its ticks, the latest first."""
        return self._store.read(schedules.ticks, _name(name), limit=validate.integer("limit", limit, 1, 1000))

    def _change(self, verb: str, flow: Callable[..., Flow[T]], name: str, *args: Any) -> T:
        return decodable(self._store.change(_action(verb, name), flow, _name(name), *args), self._codecs)


class AsyncSchedules:
    """The same for async code."""

    def __init__(self, plain: Schedules) -> None:
        self._plain = plain

    async def all(self) -> list[ScheduleInfo]:
        return await read_in_thread(self._plain.all)

    async def get(self, name: str, /) -> ScheduleInfo | None:
        return await read_in_thread(self._plain.get, name)

    async def put(
        self,
        name: str,
        draft: Draft[Any],
        cron: str | None = None,
        /,
        *,
        every: float | None = None,
        timezone: str = "UTC",
        missed: Missed = "once",
        overlap: Overlap = "allow",
    ) -> ScheduleInfo:
        return await write_in_thread(
            self._plain.put, name, draft, cron, every=every, timezone=timezone, missed=missed, overlap=overlap
        )

    async def pause(self, name: str, /) -> ScheduleInfo:
        return await write_in_thread(self._plain.pause, name)

    async def resume(self, name: str, /) -> ScheduleInfo:
        return await write_in_thread(self._plain.resume, name)

    async def run_now(self, name: str, /) -> Job[Any]:
        return await write_in_thread(self._plain.run_now, name)

    async def remove(self, name: str, /) -> None:
        await write_in_thread(self._plain.remove, name)

    async def ticks(self, name: str, /, *, limit: int = 50) -> list[Tick]:
        return await read_in_thread(self._plain.ticks, name, limit=limit)


for _method in vars(Schedules).values():
    if callable(_method) and not _method.__name__.startswith("_"):
        getattr(AsyncSchedules, _method.__name__).__doc__ = _method.__doc__  # written once


def _name(name: str) -> str:
    return validate.text("the name of a schedule", name)


def _action(verb: str, name: str) -> AuditAction:
    return AuditAction(f"{verb}_schedule", _name(name))
