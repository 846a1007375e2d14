"""Claims from queues that have limits: so many at once, so many within a time, keys in turn.

The rows of the limits are locked first; what runs, and what was started lately, is counted in later statements. So no
limit is exceeded at any commit. Only queues with limits pay for this. Expired leases are reaped only where a queue has
no room left: they count as running until then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct, field, structs

from ..._core.job import Claimed
from ..query import BEGIN, Flow, as_json, read, write
from . import mapping
from .claim_scope import Claim, Scope, places

MOST_KEYS = 200  # looked at in one step; in the first a few more than are wanted will do
MOST_STEPS = 20
WHOLE, EACH = "", "*"  # keys of rates that are meant for the whole queue, or for each key by itself


class _Limit(Struct):
    """What a queue still allows; counted down while jobs are claimed."""

    left: int
    fair: bool = False
    last_key: str | None = None
    rates: dict[str, int] = field(default_factory=dict)  # by key, WHOLE and EACH among them
    per: dict[str, float] = field(default_factory=dict)  # within how many seconds
    used: Counter[tuple[str, str]] = field(default_factory=Counter)  # of which rate, by which key
    frees_in: dict[tuple[str, str], float] = field(default_factory=dict)  # when the oldest of that counts no more

    @property
    def by_key(self) -> bool:
        """Whether it matters whose a job is."""
        return self.fair or any(key != WHOLE for key in self.rates)

    @property
    def room(self) -> int:
        """How many more may start, whosever they are."""
        rate = self.rates.get(WHOLE)
        return max(self.left if rate is None else min(self.left, rate - self.used[WHOLE, WHOLE]), 0)

    def room_for(self, key: str) -> int:
        """How many more of this key may start."""
        rate = self._rate_of(key)
        return self.room if rate is None else max(min(self.room, self.rates[rate] - self.used[rate, key]), 0)

    def take(self, key: str, number: int) -> None:
        """So many of this key start now."""
        self.left -= number
        rate = self._rate_of(key)
        self.used[WHOLE, WHOLE] += number
        if rate is not None:
            self.used[rate, key] += number

    def again_in(self) -> float | None:
        """When a rate that is used up has room again."""
        full = [of for of, number in self.used.items() if of[0] in self.rates and number >= self.rates[of[0]]]
        return min((self.frees_in.get(of, self.per[of[0]]) for of in full), default=None)

    def _rate_of(self, key: str) -> str | None:
        """Which rate a key has: its own, or that of each."""
        if key == WHOLE:
            return None
        return key if key in self.rates else EACH if EACH in self.rates else None


def claim_limited(
    scopes: Sequence[Scope], share: dict[str, Any], want: int, reap: Callable[[], Flow[Any]], ahead: int = 0
) -> Flow[Claim]:
    """Lock the limits, count, then claim what there is room for: each in a statement that sees the one before.

    Of queues without a rate, `ahead` more are claimed: a rate counts starts, and those must follow at once.
    """
    yield BEGIN
    limits = yield from _lock(scopes, want + ahead, reap)
    if not any(limit.rates for limit in limits.values()):
        want += ahead
    whole = limits.get("*", _Limit(want))
    found = Claim([])
    # In the order given, which is another each time: a queue that is never empty must not keep others waiting.
    for by_key, some in groupby(scopes, lambda scope: scope.queue in limits and limits[scope.queue].by_key):
        for part in ([one] for one in some) if by_key else [list(some)]:
            room = min(want - len(found.jobs), whole.room)
            if room > 0:
                found += yield from (_claim_by_key if by_key else _claim_in_order)(part, limits, share, room)
    yield from _note_starts(limits, found)
    soon = [limit.again_in() for limit in limits.values()]
    again_in = min((one for one in soon if one is not None), default=None)
    return found + Claim([], again_in=again_in, limited=bool(found.jobs))


class UsedUp(Struct, frozen=True):
    """A rate that has no room just now: whose, how many within how long, and in how many seconds there is room."""

    queue: str
    key: str
    rate: int
    per: float
    again_in: float


def used_up(queue: str, key: str | None) -> Flow[list[UsedUp]]:
    """The rates that keep a job of this queue and key from starting."""
    rates = yield read("limits/rates", queues=as_json([queue, "*"]))
    mine = key if key is not None and any(row[0] == queue and row[1] == key for row in rates) else EACH if key else None
    lately = (yield read("limits/group_rates", queue=queue, keys=as_json([key]))) if mine is not None else []
    of_key = {rate: (number, frees_in) for rate, _, number, frees_in in lately}
    found = []
    for of, rate_key, rate, per, number, frees_in, _ in rates:
        if rate_key == mine and of == queue:
            number, frees_in = of_key.get(rate_key, (0, 0.0))
        if rate_key in (WHOLE, mine) and (number or 0) >= rate:
            found.append(UsedUp(of, rate_key, rate, per, frees_in or 0.0))
    return found


def _lock(scopes: Sequence[Scope], want: int, reap: Callable[[], Flow[Any]]) -> Flow[dict[str, _Limit]]:
    names = sorted(scope.queue for scope in scopes)
    locked = yield write("limits/lock", queues=names)
    is_full = any(most is not None and running >= most for _, most, *_, running in locked)
    if is_full and (yield from reap()):  # what dead workers have left stood in the way
        locked = yield write("limits/lock", queues=names)
    limits = {}
    for queue, most, fair, _, last_key, running in locked:
        limits[queue] = _Limit(want if most is None else max(most - running, 0), bool(fair), last_key)
    if any(rated for _, _, _, rated, *_ in locked):
        rates = yield read("limits/rates", queues=as_json(sorted(limits)))
        if any(row[-1] for row in rates):
            ((moment,),) = yield read("inspect/clock")
            yield write("limits/rewind_starts", queues=as_json(sorted(limits)), moment=moment)
            yield write("limits/drop_rewound", queues=as_json(sorted(limits)), moment=moment)
            rates = yield read("limits/rates", queues=as_json(sorted(limits)))
        for queue, key, rate, per, number, frees_in, _ in rates:
            limits[queue].rates[key], limits[queue].per[key] = rate, per
            if number is not None:
                limits[queue].used[WHOLE, WHOLE], limits[queue].frees_in[WHOLE, WHOLE] = number, frees_in
    return limits


def claim_in_order(scopes: Sequence[Scope], share: dict[str, Any], want: int, *, limited: bool) -> Flow[list[Claimed]]:
    """Claim regardless of keys. Unless limits are locked (`limited`), up to the first queue that has one."""
    asked = places(scopes) | {"want": want, "limited": limited} | share
    by_task = any(scope.by_task for scope in scopes)
    answer = yield write("claim/claim_by_task", **asked) if by_task else write("claim/claim", **asked)
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


def _claim_by_key(scopes: Sequence[Scope], limits: dict[str, _Limit], share: dict[str, Any], want: int) -> Flow[Claim]:
    """Keys in turn, from the one after the last that was served."""
    (scope,) = scopes
    limit, want = limits[scope.queue], min(want, scope.want)
    found, turn = Claim([]), limit.last_key
    most = min(want + want // 4 + 10, MOST_KEYS)
    keys = yield from _keys(scope.queue, limit, share, turn, most)
    spent: set[str] = set()  # those that have had all that they have now
    seen = set(keys)
    for _ in range(MOST_STEPS):
        left = min(want - len(found.jobs), limit.room, limits["*"].room if "*" in limits else want)
        shares = _deal(left, [(key, limit.room_for(key)) for key in keys if key not in spent])
        if left <= 0 or (not shares and len(keys) < most):
            break
        if not shares:
            turn, most = keys[-1], MOST_KEYS
            keys = yield from _keys(scope.queue, limit, share, turn, most)
            if seen.issuperset(keys):
                break
            seen.update(keys)
            continue
        wants = {"keys": list(shares), "wants": list(shares.values())}
        jobs = mapping.claimed(
            (yield write("limits/claim_groups", queue=scope.queue, most=left, **wants, **share)), share["token"]
        )
        got = Counter(job.key or WHOLE for job in jobs)
        for key, number in got.items():
            _count(limits, scope.queue, key, number)
        found += Claim(jobs)
        if len(jobs) < left:
            spent.update(key for key, number in shares.items() if got[key] < number)
        turn = [key for key in shares if got[key] or len(jobs) < left][-1]
    if turn != limit.last_key:
        yield write("limits/set_last_group", queue=scope.queue, key=turn)
    return found


def _keys(queue: str, limit: _Limit, share: dict[str, Any], after: str | None, most: int) -> Flow[list[str]]:
    """Whose jobs wait, in the order of their turns: from the one after the last on, then from the first. What they have
    started lately is looked up where they have rates."""
    answer = yield read("limits/next_groups", queue=queue, suspect=share["suspect"], after=after, most=most)
    keys = [key for _, _, key in sorted(answer, key=lambda row: row[:2])]
    new = [key for key in keys if (rate := limit._rate_of(key)) is not None and (rate, key) not in limit.used]
    if new:
        for rate, key, number, frees_in in (yield read("limits/group_rates", queue=queue, keys=as_json(new))):
            limit.used[rate, key], limit.frees_in[rate, key] = number, frees_in
    return keys


def _deal(number: int, keys: Sequence[tuple[str, int]]) -> dict[str, int]:
    """So many to each, evenly, and no more than a key may have. One to each where there are more keys than jobs wanted:
    some may have nothing that can be had."""
    ready = [(key, room) for key, room in keys if room > 0]
    if len(ready) >= number:
        return {key: 1 for key, _ in ready}
    even, rest = divmod(number, len(ready) or 1)
    return {key: min(even + (place < rest), room) for place, (key, room) in enumerate(ready)}


def _count(limits: dict[str, _Limit], queue: str, key: str, number: int) -> None:
    if queue in limits:
        limits[queue].take(key, number)
    if "*" in limits:
        limits["*"].take(WHOLE, number)


def _note_starts(limits: dict[str, _Limit], found: Claim) -> Flow[None]:
    """Remember what has started, where a rate will ask for it; what is older than any rate asks for is forgotten.

    Where a rate is above a thousand, moments are rounded up to a thousandth of the shortest time, and the starts of one
    key counted together: a million a day cost no more to look up than a thousand.
    """
    rated = [queue for queue, limit in limits.items() if limit.rates]
    starts = Counter((job.queue, job.key or WHOLE) for job in found.jobs if job.queue in rated)
    if "*" in rated and found.jobs:
        starts["*", WHOLE] = len(found.jobs)
    if starts:
        batch = [{"queue": queue, "key": key, "number": number} for (queue, key), number in starts.items()]
        yield write("limits/delete_old_starts", queues=as_json(sorted({queue for queue, _ in starts})))
        yield write("limits/record_starts", batch=as_json(batch))
