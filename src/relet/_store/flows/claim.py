"""claim: a worker takes queued jobs and gets a lease on each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, field, structs

from ..._core.job import Claimed
from ..._core.tokens import token_of_try, tokens_of_claim
from ..._system import SYSTEM
from ..query import Flow, read, repeated_by
from . import limits, mapping
from .claim_scope import EVERYTHING, HEALTHY, QUARANTINED, SUSPECT, Claim, QueueFlags, Scope
from .claim_scope import flags as find_flags
from .lease import reap_in_transaction


def claim_again(worker: str, token: str, *args: Any, **kwargs: Any) -> Flow[Claim]:
    """Claim when an earlier try of this claim may have been committed: the jobs that it took belong to the worker."""
    return (yield from _found_or(token, claim(worker, next_token(token), *args, **kwargs)))


def claim_plain_again(worker: str, token: str, *args: Any, **kwargs: Any) -> Flow[Claim]:
    """The same for a claim of healthy jobs from queues without limits."""
    return (yield from _found_or(token, claim_plain(worker, next_token(token), *args, **kwargs)))


def _found_or(token: str, claiming: Flow[Claim]) -> Flow[Claim]:
    """The jobs that an earlier try took; if there are none, run the flow."""
    found = yield from find_claimed(token)
    return Claim(_in_order(found)) if found else (yield from claiming)


def find_claimed(token: str) -> Flow[list[Claimed]]:
    """The jobs that earlier tries of a claim took, each with the token of its try."""
    first, last = tokens_of_claim(token)
    rows = yield read("claim/claimed", first=first, last=last)
    return [mapping.claimed([row[1:]], row[0])[0] for row in rows]


def next_token(token: str) -> str:
    """The token for the next try of a claim."""
    return token_of_try(token, SYSTEM.new_token())


@repeated_by(claim_plain_again)
def claim_plain(
    worker: str, token: str, scopes: Sequence[Scope], tasks: Iterable[str], *, want: int, lease: float
) -> Flow[Claim]:
    """Take up to `want` healthy jobs from the queues before the first that has a limit, in one statement."""
    share = {"worker": worker, "token": token, "tasks": list(tasks), "lease": lease, "alone": False}
    found = yield from limits.claim_in_order(scopes, {**share, "suspect": HEALTHY}, want, limited=False)
    return Claim(_in_order(found))


class _Claiming(Struct):
    """A claim in progress: the worker's request, and the jobs found so far.

    `share`: the parameters that all claiming statements have in common. The other fields are as `claim` takes them;
    `limited` and `check_flags` are updated as soon as more is known.
    """

    scopes: Sequence[Scope]
    share: dict[str, Any]
    want: int
    slots: int | None
    ahead: int
    limited: frozenset[str]
    check_flags: bool
    reap: Callable[[], Flow[Any]]
    flags: QueueFlags | None = None
    claimed: Claim = field(default_factory=lambda: Claim([]))

    def room(self, kind: int) -> tuple[int, int]:
        """How many more jobs of this kind to take, and how many of those could start at once."""
        room = self.want - len(self.claimed.jobs)
        at_once = room if self.slots is None else max(self.slots - len(self.claimed.jobs), 0)
        if kind == SUSPECT:
            room = min(room, at_once) if self.flags is not None and self.flags.suspects else 0
        return room, at_once

    def scopes_for(self, kind: int) -> Sequence[Scope]:
        """The scopes less the jobs found so far.

        A suspect went back to its old position in the queue, which the cursor has passed: search the whole queue.
        """
        left = _less(self.scopes, self.claimed.jobs) if self.claimed.jobs else self.scopes
        return left if kind == HEALTHY else [structs.replace(scope, ranges=EVERYTHING) for scope in left]


@repeated_by(claim_again)
def claim(
    worker: str,
    token: str,
    scopes: Sequence[Scope],
    tasks: Iterable[str],
    *,
    want: int,
    lease: float,
    random: Callable[[], float],
    slots: int | None = None,
    ahead: int = 0,
    limited: frozenset[str] = frozenset(),
    rescue: bool = False,
    alone: bool = False,
    check_flags: bool = True,
    may_reap: Callable[[], bool] = lambda: True,
) -> Flow[Claim]:
    """Take up to `want` queued jobs: healthy ones first, then suspects, which have lost a worker before.

    `slots`: how many jobs can start at once (None: all). Suspects and jobs of queues with a rate are taken only for
    these. `ahead`: how many more to take from queues that have limits but no rate. `limited`: the queues that are known
    to have limits. If the first queue is among them, every claim locks the limits.

    `rescue`: take suspects first, so that a backlog of healthy jobs does not keep them waiting. `alone`: the worker
    runs nothing else, so take one quarantined job, which has lost two workers, and no other. `check_flags`: if False,
    read whether there are suspects and limits only when there are not enough healthy jobs in queues without limits.
    `may_reap` is called before expired leases are reaped, so that they do not count towards a limit.
    """
    known = sorted(tasks)
    reap = partial(reap_in_transaction, random, may_reap)
    share = {"worker": worker, "token": token, "tasks": known, "lease": lease, "alone": alone}
    if alone:
        return (yield from limits.claim_limited(scopes, {**share, "suspect": QUARANTINED}, 1, reap))
    claiming = _Claiming(scopes, share, want, slots, ahead, limited, check_flags, reap)
    if rescue:
        yield from _read_flags(claiming)
    claiming.claimed = Claim([], claiming.flags)
    for kind in (SUSPECT, HEALTHY) if rescue else (HEALTHY, SUSPECT):
        yield from _claim_kind(claiming, kind)
    _in_order(claiming.claimed.jobs)
    return claiming.claimed


def _claim_kind(claiming: _Claiming, kind: int) -> Flow[None]:
    """Add jobs of one kind to `claiming.claimed`: first without the limits, then, where there are any, with them."""
    room, at_once = claiming.room(kind)
    if room <= 0:
        return
    scopes = claiming.scopes_for(kind)
    found = yield from _claim_unlimited(claiming, kind, scopes, room)
    if claiming.flags is None and claiming.check_flags:
        yield from _read_flags(claiming)
    if claiming.flags is not None:
        claiming.limited = claiming.flags.limited
    claiming.claimed += Claim(found, claiming.flags)
    if claiming.limited:
        want = min(room, at_once) - len(found)
        ahead = 0 if kind == SUSPECT else min(claiming.ahead, room - len(found) - max(want, 0))
        claiming.claimed += yield from _claim_limited(claiming, kind, scopes, want, ahead)


def _read_flags(claiming: _Claiming) -> Flow[None]:
    queues = [scope.queue for scope in claiming.scopes]
    claiming.flags = yield from find_flags(queues, claiming.share["tasks"])


def _claim_unlimited(claiming: _Claiming, kind: int, scopes: Sequence[Scope], room: int) -> Flow[list[Claimed]]:
    """Claim from the queues before the first that has a limit. If they have too few jobs, the flags are to be read."""
    if claiming.limited & {"*", claiming.scopes[0].queue}:
        return []
    found = yield from limits.claim_in_order(scopes, {**claiming.share, "suspect": kind}, room, limited=False)
    claiming.check_flags = claiming.check_flags or len(found) < room
    return found


def _claim_limited(claiming: _Claiming, kind: int, scopes: Sequence[Scope], want: int, ahead: int) -> Flow[Claim]:
    """Claim from the first queue that has a limit, and from those after it, which `_claim_unlimited` left out.

    This takes a transaction that locks the limits.
    """
    limited = claiming.limited
    first = next((index for index, scope in enumerate(scopes) if limited & {"*", scope.queue}), len(scopes))
    if first == len(scopes) or want <= 0:
        return Claim([])
    share = {**claiming.share, "suspect": kind}
    return (yield from limits.claim_limited(scopes[first:], share, want, claiming.reap, ahead))


def _in_order(jobs: list[Claimed]) -> list[Claimed]:
    jobs.sort(key=lambda job: (job.losses > 0, job.rank_and_seq))
    return jobs


def _less(scopes: Sequence[Scope], jobs: Sequence[Claimed]) -> list[Scope]:
    """The scopes, each with the number of jobs that are still wanted from its queue."""
    taken = Counter(job.queue for job in jobs)
    return [structs.replace(scope, want=max(scope.want - taken[scope.queue], 0)) for scope in scopes]
