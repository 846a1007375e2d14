"""The life of a lease between claim and settle: renew it, report progress, reap it once it has expired.

Every write of an owner is guarded by id + token + state = 'running', spelled that way in each statement. If the guard
does not match, the statement changes nothing and the owner learns that its lease is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from ..._core import machine
from ..._core.job import Lease, Progress, Request
from ..._core.machine import Change
from ..query import BEGIN, Flow, Row, as_json, read, read_only, write
from . import mapping
from .settle import apply

PULSE_GAP = 3.0  # seconds without a pulse after which the store counts as having been unreachable
PULSE_FRESH = 1.5  # seconds; workers touch the pulse about once a second while they can renew leases
LOCKED = 0.5  # seconds of waiting for the lock that renewals need: renewals may have waited as well
GRACE_AFTER_LOCK = 1.5
MAX_REAPED = 100


def pulse_gap(lease: float) -> float:
    """The seconds without a pulse after which leases of this length may have expired: workers renew them three times
    in that time, and need some of it to reconnect."""
    return min(PULSE_GAP, max(lease / 3, PULSE_FRESH))


class Renewal(Struct, frozen=True):
    """The result of a renewal: leases renewed, skipped because the row was locked (still valid), or lost.

    `unknown`: running jobs of this worker that it did not send, because the reply to their claim was lost.
    """

    renewed: dict[Lease, Request | None] = field(default_factory=dict)
    locked: dict[Lease, Request | None] = field(default_factory=dict)
    lost: list[Lease] = field(default_factory=list)
    unknown: list[Lease] = field(default_factory=list)


def renew(worker: str, leases: Sequence[Lease], *, lease: float) -> Flow[Renewal]:
    """Renew all leases of a worker in one statement."""
    answer = Renewal()
    found = yield write("lease/renew", worker=worker, batch=as_json(mapping.lease_rows(leases)), lease=lease)
    for id, token, known, renewed, request in found:
        if not known:
            answer.unknown.append(Lease(id, token))
        else:
            (answer.renewed if renewed else answer.locked)[Lease(id, token)] = request
    answer.lost.extend(one for one in leases if one not in answer.renewed and one not in answer.locked)
    return answer


@read_only
def pending_requests(leases: Sequence[Lease]) -> Flow[Renewal]:
    """Read the requests to the owners of these leases (cancel, pause), and which leases are lost. Renews nothing."""
    found = yield read("lease/requests", batch=as_json(mapping.lease_rows(leases)))
    answer = Renewal(locked={Lease(id, token): request for id, token, request in found})
    answer.lost.extend(one for one in leases if one not in answer.locked)
    return answer


@read_only
def requested(workers: Sequence[str]) -> Flow[dict[str, dict[Lease, Request]]]:
    """By worker, the requests to cancel or pause its jobs."""
    found: dict[str, dict[Lease, Request]] = {}
    for worker, id, token, request in (yield read("lease/requested", workers=list(workers))):
        found.setdefault(worker, {})[Lease(id, token)] = request
    return found


@read_only
def queues_of(ids: Sequence[str]) -> Flow[dict[str, str]]:
    """The queues of jobs, by id, as far as they are stored."""
    return dict((yield read("lease/queues_of", ids=list(ids))))


def progress(reports: dict[Lease, Progress]) -> Flow[set[Lease]]:
    """Store the progress that handlers reported. Returns the leases for which it was stored: lost ones and locked rows
    are skipped."""
    batch = [{"id": id, "token": token, "progress": as_json(one)} for (id, token), one in reports.items()]
    stored = yield write("lease/progress", batch=as_json(batch))
    return {Lease(id, token) for id, token in stored}


def reap(random: Callable[[], float], *, limit: int = MAX_REAPED, gap: float = PULSE_FRESH) -> Flow[list[Change]]:
    """Take expired leases away from their owners, but only if workers could renew until now.

    Anything that stops renewals (a lock on the table, a long transaction on SQLite) stops this as well. If this had to
    wait for the lock, renewals may be waiting too: they go first, unless their workers had time enough. Any number of
    workers may reap at the same time.
    """
    waited = yield from await_renewals()
    if waited > LOCKED:
        yield from touch_pulse(PULSE_GAP, GRACE_AFTER_LOCK, 0.0, waited)
    return (yield from _reap(random, limit, gap))


def reap_in_transaction(random: Callable[[], float], may_reap: Callable[[], bool]) -> Flow[list[Change]]:
    """Reap in a transaction that is already open. If it waited for the lock, reap nothing: another worker will."""
    if not may_reap() or (yield from await_renewals()) > LOCKED:
        return []
    return (yield from _reap(random, MAX_REAPED, PULSE_FRESH))


def _reap(random: Callable[[], float], limit: int, gap: float) -> Flow[list[Change]]:
    rows = yield write("lease/lock_expired", gap=gap, limit=limit)
    expired = [mapping.running(tuple(row), queue) for *row, queue in rows]
    changes = [machine.reap(job, random()) for job in expired]
    yield from apply(changes)
    return changes


def await_renewals() -> Flow[float]:
    """Take the lock that renewals need. Returns how many seconds that took, by the clock of the store."""
    began = yield BEGIN
    ((waited,),) = yield write("lease/await_renewals", waited=began[0][0] if began else 0.0)
    return float(waited)


def touch_pulse(gap: float, grace: float, every: float, waited: float, *, enough: float = math.inf) -> Flow[list[Row]]:
    """Record that leases can be renewed, after a wait of so many seconds for the lock that renewals need.

    If they could not be renewed for `gap` seconds, delay reaping by `grace` seconds. In `enough` seconds without such
    faults, which need not be in a row, every worker can renew.
    """
    share = {"gap": gap, "grace": grace, "every": every, "short": GRACE_AFTER_LOCK, "waited": waited, "enough": enough}
    return (yield write("lease/touch_pulse", **share, locked=waited > LOCKED))
