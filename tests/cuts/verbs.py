"""The verbs under test: what is in the store before, the call, and what rivals do meanwhile."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relet import App, Client
from relet._core.ids import make_id
from relet._core.job import Draft, Lease, Outcome, Raised, Released, Snoozed, Succeeded
from relet._store.flows import claim as claim_flows
from relet._store.flows import claim_one
from relet._store.flows import settle as settle_flows
from relet._store.flows.claim_scope import Scope
from relet._store.flows.maintenance import Pruned

HOUR = 3600.0
DAY = 24 * HOUR
OURS = "11111111-1111-4111-8111-111111111111"  # the token of the claim under test, and of attempts that it settles
THEIRS = "22222222-2222-4222-8222-222222222222"
BEGAN = time.time()

app = App("sqlite:///:memory:")


@app.task
def work(name: str) -> object:
    return name


def draft(name: str, **options: Any) -> Draft[Any]:
    return work.using(**options).draft(name)


class Actor:
    """A user of the store: a client, and the flows of a worker."""

    def __init__(self, client: Client, named: dict[str, str]) -> None:
        self.client = client
        self.named = named  # ids of jobs that the set-up made

    def __getitem__(self, name: str) -> str:
        return self.named[name]

    def add(self, *names: str, **options: Any) -> None:
        """Jobs with ids of their own, in this order."""
        for name in names:
            number = len(self.named)
            self.named[name] = make_id(BEGAN + number / 1000, bytes([number + 1] * 10))
            self.client.enqueue(draft(name, id=self.named[name], **options))

    def claim(self, token: str, want: int = 1, queue: str = "default") -> list[tuple[str, int, int]]:
        found = self.client._store.run(
            claim_flows.claim, f"worker {token[0]}", token, [Scope(queue, want)], [work.name],
            want=want, lease=300.0, random=_half,
        )  # fmt: skip
        return [(job.id, job.attempt, job.version) for job in found.jobs]

    def claim_one(self, name: str) -> tuple[str, int, int]:
        known = {work.name: work}
        job = self.client._store.run(claim_one.claim_one, "w", OURS, self[name], known, lease=300.0, random=_half)
        return job.id, job.attempt, job.version

    def settle(self, outcome: Outcome, *names: str, token: str = OURS) -> Any:
        leases = [Lease(self[name], token) for name in names]
        return self.settle_leases(leases, outcome)

    def settle_leases(self, leases: Iterable[Lease], outcome: Outcome) -> Any:
        return [
            (one.id, one.state)
            for one in self.client._store.run(settle_flows.settle, [(lease, outcome) for lease in leases], _half)
        ]

    def run_one(self, queue: str = "default") -> Any:
        """A worker claims the next job and settles it."""
        claimed = self.claim(THEIRS, queue=queue)
        return claimed, self.settle_leases([Lease(id, THEIRS) for id, *_ in claimed], Succeeded('"theirs"'))


def _half() -> float:
    return 0.5


Act = Callable[[Actor], Any]


@dataclass(frozen=True)
class Verb:
    """One verb in one situation.

    `steps`: it takes several transactions, and the rival may act between any two of them.
    `later`: what it says of a job may be true of it after the rival has acted: it recognises the job by id or token.
    `omits`: a claim does not bring jobs that the rival has ended since, and then takes others.
    `known`: by the rival, why the answer may differ, where the call has no more than the job's id or token to go by.
    """

    name: str
    prepare: Act
    call: Act
    rivals: dict[str, Act]
    steps: bool = False
    later: bool = False
    omits: bool = False
    known: dict[str, str] = field(default_factory=dict)


VERBS: dict[str, Verb] = {}


def verb(name: str, prepare: Act, call: Act, rivals: dict[str, Act], **about: Any) -> None:
    VERBS[name] = Verb(name, prepare, call, rivals, **about)


def nothing(_: Actor) -> None:
    return


def queued(a: Actor) -> None:
    a.add("a")


def timed(a: Actor) -> None:
    a.add("a", delay=HOUR)


def paused(a: Actor) -> None:
    queued(a)
    a.client.pause(a["a"])


def running(a: Actor, *names: str, **options: Any) -> None:
    a.add(*(names or ("a",)), **options)
    assert len(a.claim(OURS, want=len(names) or 1)) == (len(names) or 1)


def failed(a: Actor, **options: Any) -> None:
    running(a, "a", **options)
    a.settle(Raised("ValueError: no", fatal=True), "a")


def cancelled(a: Actor) -> None:
    queued(a)
    cancel()(a)


def chained(a: Actor) -> None:
    """Of the chain a -> b, b is not over."""
    queued(a)
    a.named["b"] = make_id(BEGAN + 1, bytes([99] * 10))
    a.client.complete(a["a"], continue_with=draft("b", id=a["b"]))


def dependent(a: Actor) -> None:
    a.add("a")
    a.add("b", depends_on=[a["a"]])


def three(**options: Any) -> Act:
    def prepare(a: Actor) -> None:
        a.add("a", "b", "c", queue="bulk", **options)

    return prepare


def three_paused(a: Actor) -> None:
    three()(a)
    a.client.bulk("pause", queue="bulk")


def three_over(a: Actor) -> None:
    a.add("a", "b", "c")
    a.client.bulk("cancel", queue="default")


def scheduled(a: Actor) -> None:
    a.client.schedules.put("s", draft("tick"), every=HOUR)


def schedule_paused(a: Actor) -> None:
    scheduled(a)
    a.client.schedules.pause("s")


def fair(a: Actor) -> None:
    a.add("a", "b", queue="bulk")


# Rivals


def cancel(name: str = "a") -> Act:
    return lambda a: a.client.cancel(a[name])


def complete(name: str = "a", **options: Any) -> Act:
    return lambda a: a.client.complete(a[name], "theirs", **options)


def delete(name: str = "a", **options: Any) -> Act:
    return lambda a: a.client.delete(a[name], **options)


def pause(name: str = "a") -> Act:
    return lambda a: a.client.pause(a[name])


def resume(name: str = "a") -> Act:
    return lambda a: a.client.resume(a[name])


def run_now(name: str = "a") -> Act:
    return lambda a: a.client.run_now(a[name])


def go_on(a: Actor) -> Any:
    return a.client.complete(a["a"], continue_with=draft("theirs"))


def put_in(name: str = "theirs", **options: Any) -> Act:
    return lambda a: a.client.enqueue(draft(name, **options))


def a_worker(a: Actor) -> Any:
    return a.run_one()


def bulk(action: Any, queue: str = "bulk") -> Act:
    return lambda a: a.client.bulk(action, queue=queue)


def all_of(*acts: Act) -> Act:
    return lambda a: [act(a) for act in acts]


def by_itself(act: Act) -> Act:
    """In a millisecond in which nothing else happens, where the clock decides."""

    def alone(a: Actor) -> Any:
        time.sleep(0.002)
        try:
            return act(a)
        finally:
            time.sleep(0.002)

    return alone


# Enqueue

stop_default = {"pause queue": lambda a: a.client.pause_queue("default")}
ENQUEUE = {"enqueue": put_in(), "worker": a_worker, **stop_default}
LATER = {"later": True}

verb("enqueue", nothing, put_in("ours"), {**ENQUEUE, "bulk delete": bulk("delete", "default")}, **LATER, known={
    "bulk delete": "a job that is deleted before its producer has the answer is enqueued anew",
})  # fmt: skip
verb(
    "enqueue delayed",
    nothing,
    put_in("ours", delay=HOUR),
    {"enqueue": put_in(), "bulk cancel": bulk("cancel", "default")},
    **LATER,
)

GIVEN = make_id(BEGAN + 2, bytes([77] * 10))
verb("enqueue id", nothing, put_in("ours", id=GIVEN), {
    "enqueue id": put_in(id=GIVEN),
    "worker": a_worker,
    "cancel": lambda a: a.client.cancel(GIVEN),
}, **LATER, known=dict.fromkeys(
    ("enqueue id", "worker", "cancel"), "a job with an id that was given is found as existing, whichever client made it"
))  # fmt: skip
verb("enqueue unique", nothing, put_in("ours", unique="k"), {
    "enqueue unique": put_in(unique="k"),
    "worker": a_worker,
    "worker, enqueue": all_of(a_worker, put_in(unique="k")),
    "replace": put_in(unique="k", replace=True),
}, **LATER)  # fmt: skip
verb("enqueue window", nothing, put_in("ours", unique="k", unique_for=DAY), {
    "enqueue window": put_in(unique="k", unique_for=2 * DAY),
    "worker": a_worker,
}, **LATER)  # fmt: skip
verb("enqueue after", queued, lambda a: a.client.enqueue(draft("ours", depends_on=[a["a"]])), {
    "worker": a_worker,
    "delete": delete(),
    "cancel": cancel(),
}, **LATER)  # fmt: skip
verb("enqueue target", nothing, put_in("ours", target="t"), {
    "enqueue target": put_in(target="t"),
    "bulk cancel": bulk("cancel", "default"),
}, **LATER)  # fmt: skip


def unique(a: Actor) -> None:
    a.add("a", unique="k")


REPLACE = {
    "worker": a_worker,
    "claim": lambda a: a.claim(THEIRS),
    "cancel": cancel(),
    "replace": put_in(unique="k", replace=True),
}
verb("enqueue replace", unique, put_in("ours", unique="k", replace=True), REPLACE)
verb("enqueue replace new", nothing, put_in("ours", unique="k", replace=True), {
    "enqueue unique": put_in(unique="k"),
    "replace": put_in(unique="k", replace=True),
    "worker": a_worker,
})  # fmt: skip
verb("enqueue replace running", lambda a: running(a, unique="k"), put_in("ours", unique="k", replace=True), {
    "settle": lambda a: a.settle(Succeeded("1"), "a"),
    "replace": put_in(unique="k", replace=True),
})  # fmt: skip


def many(a: Actor) -> Any:
    first = draft("one")
    return a.client.enqueue_many(
        [first, draft("two", unique="k"), draft("three", depends_on=[first]), draft("four", target="t")]
    )


verb("enqueue many", nothing, many, {
    "enqueue unique": put_in(unique="k"),
    "bulk cancel": bulk("cancel", "default"),
    "enqueue": put_in(),
}, **LATER)  # fmt: skip


# One job

OTHERS = {"cancel": cancel(), "complete": complete(), "delete": delete(), "worker": a_worker}


def without(*names: str) -> dict[str, Act]:
    return {name: act for name, act in OTHERS.items() if name not in names}


verb("cancel", queued, cancel(), OTHERS)
verb("cancel running", running, cancel(), {**without("worker"), "settle": lambda a: a.settle(Succeeded("1"), "a")})
verb("cancel chain", chained, lambda a: a.client.cancel(a["a"], chain=True), {
    "cancel chain": lambda a: a.client.cancel(a["a"], chain=True),
    "complete": lambda a: a.client.complete(a["b"], continue_with=draft("theirs")),
    "worker": a_worker,
})  # fmt: skip
verb("pause", queued, pause(), {**without("worker"), "pause": pause(), "resume": all_of(resume()), "worker": a_worker})
verb(
    "pause running",
    running,
    pause(),
    {"cancel": cancel(), "settle": lambda a: a.settle(Raised("no"), "a"), "complete": complete()},
)
verb(
    "resume", paused, resume(), {**without("complete"), "resume": resume(), "resume, pause": all_of(resume(), pause())}
)
verb(
    "resume failed", failed, resume(), {"resume": resume(), "cancel": cancel(), "delete": delete(), "worker": a_worker}
)
verb("resume failed unique", lambda a: failed(a, unique="k"), resume(), {
    "enqueue unique": put_in(unique="k"),
    "resume": resume(),
})  # fmt: skip
verb("run_now", timed, run_now(), {"run_now": run_now(), "pause": pause(), "cancel": cancel(), "delete": delete()})
verb("complete", queued, lambda a: a.client.complete(a["a"], {"by": "us"}), OTHERS)
verb("complete running", running, lambda a: a.client.complete(a["a"], {"by": "us"}), {
    **without("worker"),
    "settle": lambda a: a.settle(Succeeded("1"), "a"),
})  # fmt: skip
verb("complete go on", queued, lambda a: a.client.complete(a["a"], continue_with=draft("ours")), {
    **without("cancel"),
    "go on": go_on,
    "cancel chain": lambda a: a.client.cancel(a["a"], chain=True),
})  # fmt: skip
verb("complete chain", chained, lambda a: a.client.complete(a["a"], "ours", chain=True), {
    "complete": complete("b"),
    "go on": lambda a: a.client.complete(a["b"], continue_with=draft("theirs")),
    "delete chain": delete(chain=True),
    "worker": a_worker,
})  # fmt: skip
verb("complete chain go on", chained, lambda a: a.client.complete(a["a"], continue_with=draft("ours"), chain=True), {
    "go on": lambda a: a.client.complete(a["b"], continue_with=draft("theirs")),
    "complete": complete("a", chain=True),
    "delete chain": delete(chain=True),
})  # fmt: skip
verb("complete awaited", dependent, lambda a: a.client.complete(a["a"], "ours"), {
    "complete": complete(),
    "delete": delete(),
    "cancel waiting": cancel("b"),
})  # fmt: skip
verb("delete", queued, delete(), {**OTHERS, "enqueue id": lambda a: a.client.enqueue(draft("theirs", id=a["a"]))})
verb("delete over", cancelled, delete(), {"delete": delete(), "enqueue": put_in()})
verb("delete chain", chained, delete(chain=True), {
    "delete chain": delete(chain=True),
    "go on": lambda a: a.client.complete(a["b"], continue_with=draft("theirs")),
    "worker": a_worker,
    "delete last": delete("b"),
})  # fmt: skip
verb("delete dependents", dependent, delete(chain=True, dependents=True), {
    "delete": delete(),
    "cancel waiting": cancel("b"),
    "enqueue after": lambda a: a.client.enqueue(draft("theirs", depends_on=[a["a"]])),
})  # fmt: skip


def signal(value: Any) -> Act:
    return lambda a: a.client.signal(a["a"], "go", value)


def signalled(a: Actor) -> None:
    queued(a)
    signal("before")(a)


verb("signal", queued, signal("ours"), {"signal": signal("theirs"), **OTHERS})
verb(
    "signal again",
    signalled,
    signal("ours"),
    {"signal": signal("theirs"), "cancel": cancel()},
)

# Many jobs

STEPS = {"steps": True}
verb(
    "bulk cancel",
    three(),
    bulk("cancel"),
    {"cancel": cancel("b"), "delete": delete("c"), "bulk pause": bulk("pause")},
    **STEPS,
)
verb("bulk pause", three(), bulk("pause"), {"cancel": cancel("a"), "bulk pause": bulk("pause")}, **STEPS)
verb("bulk resume", three_paused, bulk("resume"), {"resume": resume("b"), "delete": delete("c")}, **STEPS)
verb(
    "bulk run_now",
    three(delay=HOUR),
    bulk("run_now"),
    {"run_now": run_now("b"), "bulk cancel": bulk("cancel")},
    **STEPS,
)
verb(
    "bulk delete",
    three(),
    bulk("delete"),
    {"delete": delete("b"), "bulk cancel": bulk("cancel"), "enqueue": put_in(queue="bulk")},
    **STEPS,
)

# Queues


def stop(a: Actor) -> None:
    a.client.pause_queue("q")


def go(a: Actor) -> None:
    a.client.resume_queue("q")


def limit(**limits: Any) -> Act:
    return lambda a: a.client.limit_queue("bulk", **limits)


verb("pause_queue", nothing, stop, {"resume": go, "limit": lambda a: a.client.limit_queue("q", max_running=2)})
verb("resume_queue", stop, go, {"pause": stop, "limit": lambda a: a.client.limit_queue("q", max_running=2)})
verb("limit_queue", fair, limit(max_running=3, rate=5, per=1), {
    "limit": limit(max_running=7),
    "lift": limit(max_running=None, rate=None),
    "pause": lambda a: a.client.pause_queue("bulk"),
})  # fmt: skip
verb("limit_queue fair", fair, limit(fair=True), {
    "unfair": limit(fair=False),
    "enqueue": put_in(queue="bulk", group="them"),
    "claim": lambda a: a.claim(THEIRS, queue="bulk"),
}, **STEPS)  # fmt: skip

# Schedules


def put(name: str, payload: str, every: float) -> Act:
    return lambda a: a.client.schedules.put(name, draft(payload), every=every)


def remove_schedule(a: Actor) -> None:
    a.client.schedules.remove("s")


def pause_schedule(a: Actor) -> Any:
    return a.client.schedules.pause("s")


def resume_schedule(a: Actor) -> Any:
    return a.client.schedules.resume("s")


def run_schedule(a: Actor) -> Any:
    return by_itself(lambda a: a.client.schedules.run_now("s"))(a)  # two in one millisecond would be one tick


SCHEDULES = {"remove": remove_schedule, "put": put("s", "theirs", 2 * HOUR), "run_now": run_schedule}
verb("schedules.put", nothing, put("s", "ours", HOUR), {"put": put("s", "theirs", 2 * HOUR), "remove": remove_schedule})
verb("schedules.put change", scheduled, put("s", "ours", 3 * HOUR), {**SCHEDULES, "pause": pause_schedule})
verb("schedules.pause", scheduled, pause_schedule, {**SCHEDULES, "resume": resume_schedule})
verb("schedules.resume", schedule_paused, resume_schedule, {**SCHEDULES, "pause": pause_schedule})
verb("schedules.run_now", scheduled, lambda a: a.client.schedules.run_now("s"), {**SCHEDULES, "worker": a_worker})
verb("schedules.remove", scheduled, remove_schedule, SCHEDULES)

# Retention


def prune(a: Actor) -> Any:
    return _counts(a.client.prune(keep_finished=0.0, keep_failed=0.0))


def _counts(pruned: Pruned) -> Any:
    return pruned.finished, pruned.failed, pruned.keys


verb("prune", three_over, prune, {"delete": delete("b"), "prune": prune, "enqueue": put_in()}, **STEPS)
verb("prune failed", failed, prune, {"resume": resume(), "cancel": by_itself(cancel())}, **STEPS)

# In the name of a user


def ada(act: Callable[[Client, Actor], Any]) -> Act:
    return lambda a: act(a.client.acting_as("ada"), a)


verb("acting_as enqueue", nothing, ada(lambda c, a: c.enqueue(draft("ours", unique="k"))), {
    "enqueue unique": put_in(unique="k"),
    "worker": a_worker,
}, **LATER)  # fmt: skip
verb(
    "acting_as cancel",
    queued,
    ada(lambda c, a: c.cancel(a["a"])),
    {**without("worker"), "acting_as bob": lambda a: a.client.acting_as("bob").cancel(a["a"])},
)
verb(
    "acting_as complete",
    queued,
    ada(lambda c, a: c.complete(a["a"], "ours")),
    {"complete": complete(), "delete": delete()},
)
verb("acting_as delete", queued, ada(lambda c, a: c.delete(a["a"])), {"delete": delete(), "worker": a_worker})
verb(
    "acting_as schedules.put",
    nothing,
    ada(lambda c, a: c.schedules.put("s", draft("ours"), every=HOUR)),
    {"remove": remove_schedule},
)
verb(
    "acting_as bulk",
    three(),
    ada(lambda c, a: c.bulk("cancel", queue="bulk")),
    {"cancel": cancel("b"), "delete": delete("c")},
    **STEPS,
)
verb(
    "acting_as prune",
    three_over,
    ada(lambda c, a: _counts(c.prune(keep_finished=0.0))),
    {"delete": delete("b")},
    **STEPS,
)

# Repeated by the caller


def twice(act: Callable[[Client, Actor], Any]) -> Act:
    """A caller repeats its call under one key."""

    def both(a: Actor) -> Any:
        return [_said(lambda: act(a.client.idempotent("key 1", request="r"), a)) for _ in range(2)]

    return both


def _said(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return error


verb("idempotent cancel", queued, twice(lambda c, a: c.cancel(a["a"])), OTHERS, **STEPS)
verb("idempotent complete", queued, twice(lambda c, a: c.complete(a["a"], "ours")), without("cancel"), **STEPS)
verb(
    "idempotent enqueue",
    nothing,
    twice(lambda c, a: c.enqueue(draft("ours"))),
    {"enqueue": put_in(), "worker": a_worker},
    **STEPS,
)
verb(
    "idempotent delete",
    queued,
    twice(lambda c, a: c.delete(a["a"])),
    {"delete": delete(), "enqueue id": lambda a: a.client.enqueue(draft("theirs", id=a["a"]))},
    **STEPS,
)
verb(
    "idempotent signal",
    queued,
    twice(lambda c, a: c.signal(a["a"], "go", 1)),
    {"signal": signal("theirs"), "delete": delete()},
    **STEPS,
)
verb(
    "idempotent run_now",
    scheduled,
    twice(lambda c, a: c.schedules.run_now("s")),
    {"remove": remove_schedule, "worker": a_worker},
    **STEPS,
)
verb(
    "idempotent bulk",
    three(),
    twice(lambda c, a: c.bulk("cancel", queue="bulk")),
    {"cancel": cancel("b"), "enqueue": put_in(queue="bulk")},
    **STEPS,
)

# Workers

CLAIM = {
    "claim": lambda a: a.claim(THEIRS),
    "cancel": cancel(),
    "complete": complete(),
    "delete": delete(),
    "pause queue": lambda a: a.client.pause_queue("default"),
}


def two(a: Actor) -> None:
    a.add("a", "b")


def two_limited(a: Actor) -> None:
    two(a)
    a.client.limit_queue("default", max_running=1)


verb("claim", queued, lambda a: a.claim(OURS), CLAIM, omits=True)
verb("claim some", two, lambda a: a.claim(OURS, want=2), CLAIM, omits=True)
ENDED = {"complete": "once the job is completed, the token of the claim is gone: the job is said to have ended"}
verb("claim one", queued, lambda a: a.claim_one("a"), CLAIM, known=ENDED)
verb("claim one of two", two_limited, lambda a: a.claim_one("b"), CLAIM)
verb("claim one failed", failed, lambda a: a.claim_one("a"), CLAIM, known=ENDED)
verb("claim limited", two_limited, lambda a: a.claim(OURS, want=2), CLAIM, omits=True, steps=True)

SETTLE = {"cancel": cancel(), "pause": pause(), "complete": complete(), "delete": delete()}


def settle(outcome: Callable[[], Outcome], names: Sequence[str] = ("a",)) -> Act:
    return lambda a: a.settle(outcome(), *names)


TAKEN = "once the job is deleted, or another worker has claimed it, its token is gone: the lease is said to be lost"

verb("settle success", running, settle(lambda: Succeeded('"ours"')), SETTLE, **LATER)
verb("settle some", lambda a: running(a, "a", "b"), settle(lambda: Succeeded('"ours"'), ("a", "b")), SETTLE, **LATER)
verb("settle go on", running, settle(lambda: Succeeded(None, draft("ours"))), SETTLE, **LATER, known={"delete": TAKEN})
verb("settle retry", running, settle(lambda: Raised("ValueError: no", delay=HOUR)), SETTLE, **LATER)
verb("settle snooze", running, settle(lambda: Snoozed(HOUR)), SETTLE, **LATER)
verb("settle fail", running, settle(lambda: Raised("ValueError: no", fatal=True)), SETTLE, **LATER)
verb(
    "settle release",
    running,
    settle(lambda: Released()),
    {**SETTLE, "worker": a_worker},
    **LATER,
    known={"worker": TAKEN},
)


def cases(names: Iterable[str] = ()) -> Iterable[Verb]:
    """The verbs whose names begin so; all, if none is given."""
    wanted = tuple(names)
    return itertools.filterfalse(lambda one: bool(wanted) and not one.name.startswith(wanted), VERBS.values())
