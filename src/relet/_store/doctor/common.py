"""The checks that both stores have in common, and the loop that runs checks."""

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
    """One check: its name, and the flow that returns findings."""

    name: str
    flow: Callable[[], Flow[list[Finding]]]


class ConnectionLost(Exception):
    """No more checks can be run; the finding says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


def run_checks(
    checks: Iterable[Check],
    run: Callable[[Callable[[], Flow[list[Finding]]]], list[Finding]],
    describe: Callable[[Exception], str],
) -> Iterator[Finding]:
    """The findings of all checks. A check that fails, for whatever reason, becomes a finding, and the others run."""
    for check in checks:
        try:
            yield from run(check.flow)
        except ConnectionLost as lost:
            yield lost.finding
            return
        except Exception as error:
            yield judge.not_checked(check.name, describe(error))


def schema(found: doctor.Version, dialect: Dialect) -> list[Finding]:
    """Compare the version of the schema with that of the code."""
    return judge.schema(found.number, migrate.newest(dialect), found.oldest, found.release)


def pulse() -> Flow[list[Finding]]:
    """Whether a worker does maintenance."""
    return judge_work.pulse(*(yield from doctor.pulse()))


def leases() -> Flow[list[Finding]]:
    """Expired leases that no worker reaps."""
    return judge_work.leases(*(yield from doctor.overdue(judge_work.REAPED_WITHIN, judge_work.COUNT_LIMIT)))


def crew() -> Flow[list[Finding]]:
    """Workers that run, and workers that were lost."""
    now = (yield read("inspect/clock"))[0][0]
    return judge_work.crew((yield from workers.workers()), now)


def queues() -> Flow[list[Finding]]:
    """Jobs that no worker serves."""
    known = yield from workers.workers()
    return judge_work.queues((yield from doctor.waiting()), known)


JOBS = [Check("pulse", pulse), Check("leases", leases), Check("workers", crew), Check("queues", queues)]
