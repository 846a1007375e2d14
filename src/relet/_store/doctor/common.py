"""Checks that every store is put to, and how a row of checks is gone through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..._core.finding import Finding
from .. import migrate
from ..flows import doctor, workers
from ..fragments import Dialect
from ..query import Flow, read
from . import judge, judge_work


class Check(NamedTuple):
    """One check: its name, and the flow that comes to findings."""

    name: str
    flow: Callable[[], Flow[list[Finding]]]


class Lost(Exception):
    """There is nothing left to ask; the finding says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


def go_through(
    checks: Iterable[Check],
    run: Callable[[Callable[[], Flow[list[Finding]]]], list[Finding]],
    shown: Callable[[Exception], str],
) -> Iterator[Finding]:
    """The findings of all checks. One that fails, for whatever reason, becomes a finding, and the others go on."""
    for check in checks:
        try:
            yield from run(check.flow)
        except Lost as lost:
            yield lost.finding
            return
        except Exception as error:
            yield judge.not_checked(check.name, shown(error))


def schema(found: doctor.Version, dialect: Dialect) -> list[Finding]:
    """The schema's version against the code's."""
    return judge.schema(found.number, migrate.newest(dialect), found.oldest, found.release)


def pulse() -> Flow[list[Finding]]:
    """Whether anybody does upkeep."""
    return judge_work.pulse(*(yield from doctor.pulse()))


def leases() -> Flow[list[Finding]]:
    """Leases that nobody reaps."""
    return judge_work.leases(*(yield from doctor.overdue(judge_work.REAPED_WITHIN, judge_work.MOST_COUNTED)))


def crew() -> Flow[list[Finding]]:
    """Workers that are there, and that are silent."""
    now = (yield read("inspect/clock"))[0][0]
    return judge_work.crew((yield from workers.workers()), now)


def queues() -> Flow[list[Finding]]:
    """Jobs that no worker serves."""
    there = yield from workers.workers()
    return judge_work.queues((yield from doctor.waiting()), there)


JOBS = [Check("pulse", pulse), Check("leases", leases), Check("workers", crew), Check("queues", queues)]
