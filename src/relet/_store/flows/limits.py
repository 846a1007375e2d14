"""Claims from queues that have limits: jobs running at once, starts within a time, keys served in turn.

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

from ..._core.job import Claimed
from ..query import BEGIN, Flow, as_json, read, write
from . import mapping
from .claim_scope import Claim, Scope, scope_columns

MAX_KEYS = 200  # keys read in one step; the first step reads only a few more than are wanted
MAX_STEPS = 20
WHOLE, EACH = "", "*"  # keys of rates that apply to the whole queue, or to each key separately


class _Limit(Struct):
    """The room that a queue has left; counted down while jobs are claimed."""

    left: int
    fair: bool = False
    last_key: str | None = None
    rates: dict[str, int] = field(default_factory=dict)  # by key, WHOLE and EACH among them
    per: dict[str, float] = field(default_factory=dict)  # by key, the seconds of the rate
    used: Counter[tuple[str, str]] = field(
        default_factory=Counter
    )  # recent starts, by the rate's key and the job's key
    frees_in: dict[tuple[str, str], float] = field(
        default_factory=dict
    )  # seconds until the oldest of those no longer counts

    @property
    def by_key(self) -> bool:
        """Whether the key of a job matters."""
        return self.fair or any(key != WHOLE for key in self.rates)

    @property
    def room(self) -> int:
        """How many more jobs may start, regardless of key."""
        rate = self.rates.get(WHOLE)
        return max(self.left if rate is None else min(self.left, rate - self.used[WHOLE, WHOLE]), 0)

    def room_for(self, key: str) -> int:
        """How many more jobs of this key may start."""
        rate = self._rate_of(key)
        return self.room if rate is None else max(min(self.room, self.rates[rate] - self.used[rate, key]), 0)

    def take(self, key: str, number: int) -> None:
        """Count jobs of this key that start now."""
        self.left -= number
        rate = self._rate_of(key)
        self.used[WHOLE, WHOLE] += number
        if rate is not None:
            self.used[rate, key] += number

    def again_in(self) -> float | None:
        """Seconds until a rate that is used up has room again; None if none is used up."""
        used_up = [pair for pair, number in self.used.items() if self._is_full(pair[0], number)]
        return min((self.frees_in.get(pair, self.per[pair[0]]) for pair in used_up), default=None)

    def _is_full(self, rate: str, number: int) -> bool:
        return rate in self.rates and number >= self.rates[rate]

    def _rate_of(self, key: str) -> str | None:
        """The key of the rate that applies to a job's key: that key, or EACH."""
        if key == WHOLE:
            return None
        return key if key in self.rates else EACH if EACH in self.rates else None


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
    for by_key, part in _parts(scopes, limits):
        room = min(want - len(found.jobs), whole.room)
        if room > 0:
            found += yield from (_claim_by_key if by_key else _claim_in_order)(part, limits, share, room)
    yield from _record_starts(limits, found)
    soon = [limit.again_in() for limit in limits.values()]
    again_in = min((one for one in soon if one is not None), default=None)
    return found + Claim([], again_in=again_in, limited=bool(found.jobs))


def _parts(scopes: Sequence[Scope], limits: dict[str, _Limit]) -> Iterator[tuple[bool, list[Scope]]]:
    """The scopes in their order: a queue where keys matter by itself (True), neighbours without keys together."""
    for by_key, some in groupby(scopes, lambda scope: scope.queue in limits and limits[scope.queue].by_key):
        if by_key:
            yield from ((True, [scope]) for scope in some)
        else:
            yield False, list(some)


class UsedUp(Struct, frozen=True):
    """A rate that has no room now: its queue and key, `rate` starts in `per` seconds, and seconds until it has room."""

    queue: str
    key: str
    rate: int
    per: float
    again_in: float


def used_up(queue: str, key: str | None) -> Flow[list[UsedUp]]:
    """The rates that prevent a job of this queue and key from starting now."""
    rates = yield read("limits/rates", queues=as_json([queue, "*"]))
    own = any(row[0] == queue and row[1] == key for row in rates)  # a rate for this very key
    applies = key if key is not None and own else EACH if key else None
    starts = (yield read("limits/group_rates", queue=queue, keys=as_json([key]))) if applies is not None else []
    of_key = {rate: (number, frees_in) for rate, _, number, frees_in in starts}
    found = []
    for rate_queue, rate_key, rate, per, number, frees_in, _ in rates:
        if rate_key == applies and rate_queue == queue:
            number, frees_in = of_key.get(rate_key, (0, 0.0))
        if rate_key in (WHOLE, applies) and (number or 0) >= rate:
            found.append(UsedUp(rate_queue, rate_key, rate, per, frees_in or 0.0))
    return found


def _lock(scopes: Sequence[Scope], want: int, reap: Callable[[], Flow[Any]]) -> Flow[dict[str, _Limit]]:
    """Lock the limits of these queues, and read them. Reaps expired leases first if they use up a limit."""
    names = sorted(scope.queue for scope in scopes)
    locked = yield write("limits/lock", queues=names)
    is_full = any(max_running is not None and running >= max_running for _, max_running, *_, running in locked)
    if is_full and (yield from reap()):
        locked = yield write("limits/lock", queues=names)
    limits = {}
    for queue, max_running, fair, _, last_key, running in locked:
        left = want if max_running is None else max(max_running - running, 0)
        limits[queue] = _Limit(left, bool(fair), last_key)
    if any(rated for _, _, _, rated, *_ in locked):
        yield from _read_rates(limits)
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
    for queue, key, rate, per, number, frees_in, _ in rates:
        limit = limits[queue]
        limit.rates[key], limit.per[key] = rate, per
        if number is not None:
            limit.used[WHOLE, WHOLE], limit.frees_in[WHOLE, WHOLE] = number, frees_in


def claim_in_order(scopes: Sequence[Scope], share: dict[str, Any], want: int, *, limited: bool) -> Flow[list[Claimed]]:
    """Claim regardless of keys. Unless the limits are locked (`limited`), stop before the first queue that has one."""
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
    """The keys of one queue that have jobs, served in turn from the one after `last`."""

    queue: str
    limit: _Limit
    last: str | None  # the key that was served last
    page: int  # how many keys one step reads
    keys: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    spent: set[str] = field(default_factory=set)  # keys without any more jobs to claim

    def read_page(self, suspect: int) -> Flow[bool]:
        """Read the keys after `last`. Returns whether there are any that were not seen before."""
        self.keys = yield from _keys(self.queue, self.limit, suspect, self.last, self.page)
        is_new = not self.seen.issuperset(self.keys)
        self.seen.update(self.keys)
        return is_new

    def deal(self, number: int) -> dict[str, int]:
        """How many of `number` jobs to claim of each key."""
        return _deal(number, [(key, self.limit.room_for(key)) for key in self.keys if key not in self.spent])

    def record(self, wants: dict[str, int], jobs: Sequence[Claimed], want: int) -> None:
        """Update the turns after `jobs` were claimed, where `want` jobs, and `wants` of each key, were asked for."""
        claimed = _by_key(jobs)
        if len(jobs) < want:
            self.spent.update(key for key, number in wants.items() if claimed[key] < number)
        self.last = [key for key in wants if claimed[key] or len(jobs) < want][-1]


def _by_key(jobs: Sequence[Claimed]) -> Counter[str]:
    return Counter(job.key or WHOLE for job in jobs)


def _claim_by_key(scopes: Sequence[Scope], limits: dict[str, _Limit], share: dict[str, Any], want: int) -> Flow[Claim]:
    """Claim up to `want` jobs of one queue, its keys in turn, from the one after the last that was served."""
    (scope,) = scopes
    limit, want = limits[scope.queue], min(want, scope.want)
    found = Claim([])
    turns = _Turns(scope.queue, limit, limit.last_key, min(want + want // 4 + 10, MAX_KEYS))
    yield from turns.read_page(share["suspect"])
    for _ in range(MAX_STEPS):
        left = min(want - len(found.jobs), limit.room, limits["*"].room if "*" in limits else want)
        wants = turns.deal(left)
        if left <= 0 or (not wants and len(turns.keys) < turns.page):
            break
        if wants:
            jobs = yield from _claim_of_keys(scope.queue, limits, share, wants, left)
            found += Claim(jobs)
            turns.record(wants, jobs, left)
        else:  # no key of this page has room, or jobs: read the next
            turns.last, turns.page = turns.keys[-1], MAX_KEYS
            if not (yield from turns.read_page(share["suspect"])):
                break
    if turns.last != limit.last_key:
        yield write("limits/set_last_group", queue=scope.queue, key=turns.last)
    return found


def _claim_of_keys(
    queue: str, limits: dict[str, _Limit], share: dict[str, Any], wants: dict[str, int], want: int
) -> Flow[list[Claimed]]:
    """Claim `want` jobs of a queue at most, and of each key as many as `wants` says; count them in the limits."""
    params = {"keys": list(wants), "wants": list(wants.values())}
    rows = yield write("limits/claim_groups", queue=queue, most=want, **params, **share)
    jobs = mapping.claimed(rows, share["token"])
    for key, number in _by_key(jobs).items():
        _count(limits, queue, key, number)
    return jobs


def _keys(queue: str, limit: _Limit, suspect: int, after: str | None, number: int) -> Flow[list[str]]:
    """The keys that have queued jobs, in the order of their turns: those after `after`, then from the first on.

    Reads the recent starts of keys that have a rate.
    """
    answer = yield read("limits/next_groups", queue=queue, suspect=suspect, after=after, most=number)
    keys = [key for _, _, key in sorted(answer, key=lambda row: row[:2])]
    new = [key for key in keys if (rate := limit._rate_of(key)) is not None and (rate, key) not in limit.used]
    if new:
        for rate, key, starts, frees_in in (yield read("limits/group_rates", queue=queue, keys=as_json(new))):
            limit.used[rate, key], limit.frees_in[rate, key] = starts, frees_in
    return keys


def _deal(number: int, keys: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Divide `number` jobs evenly among the keys, none more than its room. In: keys with the room of each.

    If there are more keys than jobs, each key with room gets one: some may have no job that can be claimed.
    """
    ready = [(key, room) for key, room in keys if room > 0]
    if len(ready) >= number:
        return {key: 1 for key, _ in ready}
    even, rest = divmod(number, len(ready) or 1)
    return {key: min(even + (index < rest), room) for index, (key, room) in enumerate(ready)}


def _count(limits: dict[str, _Limit], queue: str, key: str, number: int) -> None:
    if queue in limits:
        limits[queue].take(key, number)
    if "*" in limits:
        limits["*"].take(WHOLE, number)


def _record_starts(limits: dict[str, _Limit], found: Claim) -> Flow[None]:
    """Record the starts that rates will count, and delete those that are older than any rate counts.

    If a rate is above a thousand, times are rounded up to a thousandth of the shortest period and the starts of one key
    are added up: reading a million starts a day costs no more than reading a thousand.
    """
    rated = [queue for queue, limit in limits.items() if limit.rates]
    starts = Counter((job.queue, job.key or WHOLE) for job in found.jobs if job.queue in rated)
    if "*" in rated and found.jobs:
        starts["*", WHOLE] = len(found.jobs)
    if starts:
        batch = [{"queue": queue, "key": key, "number": number} for (queue, key), number in starts.items()]
        yield write("limits/delete_old_starts", queues=as_json(sorted({queue for queue, _ in starts})))
        yield write("limits/record_starts", batch=as_json(batch))
