"""Claims from queues that have limits: jobs running at once, starts within a time, groups served in turn.

The claim locks the rows of the limits first, and counts the running jobs and recent starts in later statements. So no
limit is exceeded at any commit. Only queues with limits pay for this. Expired leases count as running until they are
reaped; a claim reaps them only if a queue has no room left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct, field, structs

from ..._core.job import Claimed, Job
from ..query import BEGIN, Flow, as_json, read, read_only, write
from . import mapping
from .claim_scope import Claim, Scope, scope_columns

MAX_GROUPS = 200  # groups read in one step; the first step reads only a few more than are wanted
MAX_STEPS = 20
MAX_NUDGES = 1000  # taken by one statement
WHOLE, EACH = "", "*"  # groups of rates that apply to the whole queue, or to each group separately


class _Limit(Struct):
    """The room that a queue has left; counted down while jobs are claimed."""

    left: int
    fair: bool = False
    last_group: str | None = None
    rates: dict[str, int] = field(default_factory=dict)  # by group, WHOLE and EACH among them
    per: dict[str, float] = field(default_factory=dict)  # by group, the seconds of the rate
    used: Counter[tuple[str, str]] = field(
        default_factory=Counter
    )  # recent starts, by the rate's group and the job's group
    frees_in: dict[tuple[str, str], float] = field(
        default_factory=dict
    )  # seconds until the oldest of those no longer counts
    max_running: dict[str, int] = field(default_factory=dict)  # by group, EACH among them
    running: dict[str, int] = field(default_factory=dict)  # by group, if groups have such a limit

    @property
    def by_group(self) -> bool:
        """Whether the group of a job matters."""
        return self.fair or bool(self.max_running) or any(group != WHOLE for group in self.rates)

    @property
    def room(self) -> int:
        """How many more jobs may start, regardless of group."""
        rate = self.rates.get(WHOLE)
        return max(self.left if rate is None else min(self.left, rate - self.used[WHOLE, WHOLE]), 0)

    def room_for(self, group: str) -> int:
        """How many more jobs of this group may start."""
        rate = self._rate_of(group)
        room = self.room if rate is None else min(self.room, self.rates[rate] - self.used[rate, group])
        left = self.left_in(group)
        return max(room if left is None else min(room, left), 0)

    def left_in(self, group: str) -> int | None:
        """How many more jobs of this group may run at once; None if the group, or a job without one, has no limit."""
        limit = self.max_running.get(group, self.max_running.get(EACH))
        return None if limit is None or group == WHOLE else limit - self.running.get(group, 0)

    def is_full(self, group: str) -> bool:
        """Whether the group has as many running jobs as it may have."""
        left = self.left_in(group)
        return left is not None and left <= 0

    def take(self, group: str, number: int) -> None:
        """Count jobs of this group that start now."""
        self.left -= number
        self.running[group] = self.running.get(group, 0) + number
        rate = self._rate_of(group)
        self.used[WHOLE, WHOLE] += number
        if rate is not None:
            self.used[rate, group] += number

    def again_in(self) -> float | None:
        """Seconds until a rate that is used up has room again; None if none is used up."""
        used_up = [pair for pair, number in self.used.items() if self._is_used_up(pair[0], number)]
        return min((self.frees_in.get(pair, self.per[pair[0]]) for pair in used_up), default=None)

    def _is_used_up(self, rate: str, number: int) -> bool:
        return rate in self.rates and number >= self.rates[rate]

    def _rate_of(self, group: str) -> str | None:
        """The group of the rate that applies to a job's group: that group, or EACH."""
        if group == WHOLE:
            return None
        return group if group in self.rates else EACH if EACH in self.rates else None


def claim_limited(
    scopes: Sequence[Scope], share: dict[str, Any], want: int, reap: Callable[[], Flow[Any]], ahead: int = 0
) -> Flow[Claim]:
    """Lock the limits, count, then claim as many jobs as there is room for. Each statement sees the one before.

    If no queue has a rate, claim `ahead` more. A rate counts starts, so jobs of a queue with one must start at once.
    """
    yield BEGIN
    limits = yield from _lock(scopes, want + ahead, reap)
    if not any(limit.rates for limit in limits.values()):
        want += ahead
    whole = limits.get("*", _Limit(want))
    found = Claim([])
    # In the caller's order, which differs each time: a queue that is never empty must not keep others waiting.
    for by_group, part in _parts(scopes, limits):
        room = min(want - len(found.jobs), whole.room)
        if room > 0:
            found += yield from (_claim_by_group if by_group else _claim_in_order)(part, limits, share, room)
    yield from _record_starts(limits, found)
    return found + Claim([], again_in=_again_in(limits), limited=bool(found.jobs))


def claim_one(job: Job[Any], share: dict[str, Any], reap: Callable[[], Flow[Any]]) -> Flow[Claim]:
    """Claim this queued job, if the limits leave room for it."""
    yield BEGIN
    limits = yield from _lock([Scope(job.queue, 1)], 1, reap)
    own, group = limits.get(job.queue, _Limit(1)), job.group or WHOLE
    yield from _read_group_rates(job.queue, own, [group])
    if own.max_running:
        ((own.running[group],),) = yield read("limits/group_running", queue=job.queue, group=group)
    found = Claim([])
    if min(limits.get("*", own).room, own.room_for(group)) > 0:
        rows = yield write("claim/claim_one", id=job.id, **share)
        found = Claim(mapping.claimed(rows, share["token"]))
        yield from _record_starts(limits, found)
    return found + Claim([], again_in=_again_in(limits))


def _again_in(limits: dict[str, _Limit]) -> float | None:
    """Seconds until the first of the rates that are used up has room again."""
    soon = [limit.again_in() for limit in limits.values()]
    return min((one for one in soon if one is not None), default=None)


def _parts(scopes: Sequence[Scope], limits: dict[str, _Limit]) -> Iterator[tuple[bool, list[Scope]]]:
    """The scopes in their order: a queue where groups matter by itself (True), neighbours without groups together."""
    for by_group, some in groupby(scopes, lambda scope: scope.queue in limits and limits[scope.queue].by_group):
        if by_group:
            yield from ((True, [scope]) for scope in some)
        else:
            yield False, list(some)


class UsedUp(Struct, frozen=True):
    """A rate that has no room now: its queue and group, `rate` starts in `per` seconds, and when it has room again."""

    queue: str
    group: str
    rate: int
    per: float
    again_in: float


def used_up(queue: str, group: str | None) -> Flow[list[UsedUp]]:
    """The rates that prevent a job of this queue and group from starting now."""
    rates = yield read("limits/rates", queues=as_json([queue, "*"]))
    own = any(row[0] == queue and row[1] == group for row in rates)  # a rate for this very group
    applies = group if group is not None and own else EACH if group else None
    starts = (yield read("limits/group_rates", queue=queue, groups=as_json([group]))) if applies is not None else []
    of_group = {rate: (number, frees_in) for rate, _, number, frees_in in starts}
    found = []
    for rate_queue, rate_group, rate, per, number, frees_in, _ in rates:
        if rate_group == applies and rate_queue == queue:
            number, frees_in = of_group.get(rate_group, (0, 0.0))
        if rate_group in (WHOLE, applies) and (number or 0) >= rate:
            found.append(UsedUp(rate_queue, rate_group, rate, per, frees_in or 0.0))
    return found


@read_only
def queues_with_group_limits() -> Flow[list[str]]:
    return sorted({row[0] for row in (yield read("limits/all_group_limits"))})


def find_ready(queue: str) -> Flow[None]:
    """Find the groups with queued jobs in a queue with limits by group, if no nudge named them.

    An enqueue that began before the limit was set leaves no nudge, nor does a program of an earlier release.
    """
    yield BEGIN
    yield write("limits/lock", queues=[queue])
    yield write("limits/find_ready_groups", queue=queue)


def _lock(scopes: Sequence[Scope], want: int, reap: Callable[[], Flow[Any]]) -> Flow[dict[str, _Limit]]:
    """Lock the limits of these queues, and read them. Reaps expired leases first if they use up a limit."""
    names = sorted(scope.queue for scope in scopes)
    locked = yield write("limits/lock", queues=names)
    is_full = any(max_running is not None and running >= max_running for _, max_running, *_, running in locked)
    if is_full and (yield from reap()):
        locked = yield write("limits/lock", queues=names)
    limits = {}
    for queue, max_running, fair, _, last_group, running in locked:
        left = want if max_running is None else max(max_running - running, 0)
        limits[queue] = _Limit(left, bool(fair), last_group)
    if any(rated for _, _, _, rated, *_ in locked):
        yield from _read_rates(limits)
        for queue, group, number in (yield read("limits/group_limits", queues=as_json(sorted(limits)))):
            limits[queue].max_running[group] = number
    return limits


def _read_rates(limits: dict[str, _Limit]) -> Flow[None]:
    """Add the rates, and the recent starts of whole queues. Starts in the future are moved back to now first: the
    clock was set back."""
    queues = as_json(sorted(limits))
    rates = yield read("limits/rates", queues=queues)
    if any(row[-1] for row in rates):
        ((moment,),) = yield read("inspect/clock")
        yield write("limits/rewind_starts", queues=queues, moment=moment)
        yield write("limits/drop_rewound", queues=queues, moment=moment)
        rates = yield read("limits/rates", queues=queues)
    for queue, group, rate, per, number, frees_in, _ in rates:
        limit = limits[queue]
        limit.rates[group], limit.per[group] = rate, per
        if number is not None:
            limit.used[WHOLE, WHOLE], limit.frees_in[WHOLE, WHOLE] = number, frees_in


def claim_in_order(scopes: Sequence[Scope], share: dict[str, Any], want: int, *, limited: bool) -> Flow[list[Claimed]]:
    """Claim regardless of groups. Unless limits are locked (`limited`), stop before the first queue that has one."""
    params = scope_columns(scopes) | {"want": want, "limited": limited} | share
    by_task = any(scope.by_task for scope in scopes)
    answer = yield write("claim/claim_by_task", **params) if by_task else write("claim/claim", **params)
    return mapping.claimed(answer, share["token"])


def _claim_in_order(
    scopes: Sequence[Scope], limits: dict[str, _Limit], share: dict[str, Any], want: int
) -> Flow[Claim]:
    allowed = [
        structs.replace(one, want=min(one.want, limits[one.queue].room)) if one.queue in limits else one
        for one in scopes
    ]
    found = yield from claim_in_order(allowed, share, want, limited=True)
    for queue, number in Counter(job.queue for job in found).items():
        _count(limits, queue, WHOLE, number)
    return Claim(found)


class _Turns(Struct):
    """The groups of one queue that have jobs, served in turn from the one after `last`."""

    queue: str
    limit: _Limit
    last: str | None  # the group that was served last
    page: int  # how many groups one step reads
    groups: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    spent: set[str] = field(default_factory=set)  # groups without any more jobs to claim

    def read_page(self, suspect: int) -> Flow[bool]:
        """Read the groups after `last`. Returns whether there are any that were not seen before."""
        self.groups = yield from _groups(self.queue, self.limit, suspect, self.last, self.page)
        is_new = not self.seen.issuperset(self.groups)
        self.seen.update(self.groups)
        return is_new

    def drop_ready(self) -> Flow[None]:
        """Record that groups are full, or have no queued jobs: claims skip them until that may have changed."""
        full = [group for group in self.seen if self.limit.is_full(group)]
        if full or self.spent:
            yield write("limits/drop_ready_groups", queue=self.queue, full=as_json(full), spent=as_json([*self.spent]))

    def deal(self, number: int) -> dict[str, int]:
        """How many of `number` jobs to claim of each group."""
        return _deal(number, [(group, self.limit.room_for(group)) for group in self.groups if group not in self.spent])

    def record(self, wants: dict[str, int], jobs: Sequence[Claimed], want: int) -> None:
        """Update the turns after `jobs` were claimed, where `want` jobs, and `wants` of each group, were asked for."""
        claimed = _by_group(jobs)
        if len(jobs) < want:
            self.spent.update(group for group, number in wants.items() if claimed[group] < number)
        self.last = [group for group in wants if claimed[group] or len(jobs) < want][-1]


def _by_group(jobs: Sequence[Claimed]) -> Counter[str]:
    return Counter(job.group or WHOLE for job in jobs)


def _claim_by_group(
    scopes: Sequence[Scope], limits: dict[str, _Limit], share: dict[str, Any], want: int
) -> Flow[Claim]:
    """Claim up to `want` jobs of one queue, its groups in turn, from the one after the last that was served."""
    (scope,) = scopes
    limit, want = limits[scope.queue], min(want, scope.want)
    found = Claim([])
    turns = _Turns(scope.queue, limit, limit.last_group, min(want + want // 4 + 10, MAX_GROUPS))
    has_nudges = bool(limit.max_running) and (yield from _take_nudges(scope.queue))
    yield from turns.read_page(share["suspect"])
    for _ in range(MAX_STEPS):
        left = min(want - len(found.jobs), limit.room, limits["*"].room if "*" in limits else want)
        wants = turns.deal(left)
        is_last = not wants and len(turns.groups) < turns.page
        if left <= 0 or (is_last and not has_nudges):
            break
        if is_last:
            has_nudges = yield from _take_nudges(scope.queue)
            yield from turns.read_page(share["suspect"])
        elif wants:
            jobs = yield from _claim_of_keys(scope.queue, limits, share, wants, left)
            found += Claim(jobs)
            turns.record(wants, jobs, left)
        else:  # no group of this page has room, or jobs: read the next
            turns.last, turns.page = turns.groups[-1], MAX_GROUPS
            if not (yield from turns.read_page(share["suspect"])):
                break
    if turns.last != limit.last_group:
        yield write("limits/set_last_group", queue=scope.queue, group=turns.last)
    if limit.max_running:
        yield from turns.drop_ready()
    return found + Claim([], again_in=0.0 if has_nudges else None)


def _take_nudges(queue: str) -> Flow[bool]:
    """Add groups of which nudges say that they may have a job which can start. Returns whether there may be more."""
    ((number,),) = yield write("limits/take_group_nudges", queue=queue, limit=MAX_NUDGES)
    return bool(number == MAX_NUDGES)


def _claim_of_keys(
    queue: str, limits: dict[str, _Limit], share: dict[str, Any], wants: dict[str, int], want: int
) -> Flow[list[Claimed]]:
    """Claim `want` jobs of a queue at most, and of each group as many as `wants` says; count them in the limits."""
    params = {"groups": list(wants), "wants": list(wants.values())}
    rows = yield write("limits/claim_groups", queue=queue, limit=want, **params, **share)
    jobs = mapping.claimed(rows, share["token"])
    for group, number in _by_group(jobs).items():
        _count(limits, queue, group, number)
    return jobs


def _groups(queue: str, limit: _Limit, suspect: int, after: str | None, number: int) -> Flow[list[str]]:
    """The groups that have queued jobs, in the order of their turns: those after `after`, then from the first on.

    Reads the running jobs of groups that have a limit for them, and the recent starts of groups that have a rate.
    """
    if limit.max_running:
        answer = yield read("limits/ready_groups", queue=queue, suspect=suspect, after=after, limit=number)
        groups = [group for _, group, _ in sorted(answer)]
        limit.running |= {group: running for _, group, running in answer}
    else:
        answer = yield read("limits/next_groups", queue=queue, suspect=suspect, after=after, limit=number)
        groups = [group for _, _, group in sorted(answer, key=lambda row: row[:2])]
    yield from _read_group_rates(queue, limit, groups)
    return groups


def _read_group_rates(queue: str, limit: _Limit, groups: Sequence[str]) -> Flow[None]:
    """Read the recent starts of those groups that have a rate, unless they were read before."""
    new = [group for group in groups if (rate := limit._rate_of(group)) is not None and (rate, group) not in limit.used]
    if new:
        for rate, group, starts, frees_in in (yield read("limits/group_rates", queue=queue, groups=as_json(new))):
            limit.used[rate, group], limit.frees_in[rate, group] = starts, frees_in


def _deal(number: int, groups: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Divide `number` jobs evenly among the groups, none more than its room. In: groups with the room of each.

    If there are more groups than jobs, each group with room gets one: some may have no job that can be claimed.
    """
    ready = [(group, room) for group, room in groups if room > 0]
    if len(ready) >= number:
        return {group: 1 for group, _ in ready}
    even, rest = divmod(number, len(ready) or 1)
    return {group: min(even + (index < rest), room) for index, (group, room) in enumerate(ready)}


def _count(limits: dict[str, _Limit], queue: str, group: str, number: int) -> None:
    if queue in limits:
        limits[queue].take(group, number)
    if "*" in limits:
        limits["*"].take(WHOLE, number)


def _record_starts(limits: dict[str, _Limit], found: Claim) -> Flow[None]:
    """Record the starts that rates will count, and delete those that are older than any rate counts.

    If a rate is above a thousand, times are rounded up to a thousandth of the shortest period and the starts of a group
    are added up: reading a million starts a day costs no more than reading a thousand.
    """
    rated = [queue for queue, limit in limits.items() if limit.rates]
    starts = Counter((job.queue, job.group or WHOLE) for job in found.jobs if job.queue in rated)
    if "*" in rated and found.jobs:
        starts["*", WHOLE] = len(found.jobs)
    if starts:
        batch = [{"queue": queue, "group_key": group, "number": number} for (queue, group), number in starts.items()]
        yield write("limits/delete_old_starts", queues=as_json(sorted({queue for queue, _ in starts})))
        yield write("limits/record_starts", batch=as_json(batch))
