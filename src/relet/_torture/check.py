"""The invariants of jobs: each is a function of the history that yields violations, and takes linear time.

The letters are those of docs/proof.md. `claim_order`, `recovery` and `waiting` have the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise, product

from .._core.machine import TRANSITIONS
from . import facts
from .claim_order import claims_follow_the_order
from .jobs import CLOCK, ENDED, OVER, STATEMENT, Invariant, Jobs, LimitKey, Violation, allowed, claims, limit_keys
from .load import Event, Record
from .recovery import MORE_CHECKS
from .waiting import WAITING_CHECKS


def nothing_is_lost(jobs: Jobs) -> Iterator[Violation]:
    """A: every job of a call that returned is in the store; of one that was refused, none is."""
    for event in jobs.loaded.events["enqueue"]:
        if event.fields["phase"] == "ok":
            for id in event.fields["stored"]:
                if id not in jobs.records:
                    yield Violation("A", id, f"{event.by} enqueued it, and it is not in the store")
        elif event.fields["phase"] == "failed":
            for id in event.fields["ids"]:
                if id in jobs.records:
                    yield Violation("A", id, f"{event.by} was refused, and it is in the store")


def nothing_is_made_up(jobs: Jobs) -> Iterator[Violation]:
    """B: a producer enqueued every job, or another job continued with it, or failed, or a schedule fired."""
    known = {id for event in jobs.loaded.events["enqueue"] for id in event.fields["ids"]}
    for id, records in jobs.records.items():
        if id not in known and records[0].after.get("task") not in facts.MADE_BY_OTHERS:
            yield Violation("B", id, f"no producer enqueued it: {records[0].after}")


def _edges() -> set[tuple[str, str]]:
    pairs = {(str(a), str(b)) for verb in TRANSITIONS.values() for a, b in product(verb.sources, verb.targets)}
    return pairs | {(state, state) for state in ("pending", "queued", "running", "paused", "failed")}


def transitions_are_legal(jobs: Jobs) -> Iterator[Violation]:
    """C: every change of a state is in the table of transitions. D: a job ends once, and stays ended."""
    edges = _edges()
    for id, records in jobs.records.items():
        state, ends = None, 0
        for one in records:
            if one.table == "finished":
                if one.event == "delete":
                    continue
                ends += 1
                new = one.after["state"]
            elif one.event == "delete":
                continue  # a job that is over moves to another table; a delete by an operator has no successor
            else:
                new = one.after["state"]
            if state is not None and (state, new) not in edges:
                yield Violation("C", id, f"{state} to {new} at record {one.seq}")
            if ends > 1 or (ends and one.table == "jobs"):
                yield Violation("D", id, f"it was over, and record {one.seq} follows: {one.after}")
            state = new


def leases_are_exclusive(jobs: Jobs) -> Iterator[Violation]:
    """E: each claim has a new token and the next version. F: attempts never exceed the maximum."""
    tokens: set[str] = set()
    for id, records in jobs.records.items():
        version = 0
        for one in claims(records):
            version += 1
            if one.after["version"] != version:
                yield Violation("E", id, f"claim {version} has version {one.after['version']}")
                version = one.after["version"]
            if one.after["token"] + id in tokens:
                yield Violation("E", id, f"the token {one.after['token']} was used before")
            tokens.add(one.after["token"] + id)
            if one.after["attempt"] > one.after["max_attempts"]:
                yield Violation("F", id, f"attempt {one.after['attempt']} of {one.after['max_attempts']}")


def leases_are_not_taken_early(jobs: Jobs) -> Iterator[Violation]:
    """G: a lease is taken from its worker only after it has expired, by the clock of the database.

    H: and only if a fault struck that worker. An outage for all workers costs none of them a lease.
    """
    for (id, version), attempt in jobs.attempts.items():
        if attempt.after["outcome"] != "lost":
            continue
        last = jobs.leases[id, version][-1] if (id, version) in jobs.leases else None
        expires = last.after["expires_at"] if last is not None else None
        if expires is None or expires > attempt.at + CLOCK:
            late = "no lease" if expires is None else f"{expires - attempt.at:.3f} s before it expired"
            yield Violation("G", id, f"version {version} was reaped: {late}")
        since = jobs.local(last) if last is not None else jobs.local(attempt)
        worker, until = attempt.after["worker"], jobs.local(attempt)
        is_explained = (
            jobs.is_excused(worker, since, until)
            or jobs.could_not_renew(worker, since, until)
            or jobs.could_not_release(worker, since, until)
            or (last is not None and jobs.was_locked(id, jobs.expiry(last)))
        )
        if not is_explained:
            yield Violation("H", id, f"version {version} was taken from {worker}, which had no fault")


def only_the_owner_settles(jobs: Jobs) -> Iterator[Violation]:
    """I: the result that is stored is that of the last attempt. J: the ledger has one entry of it, and no other."""
    for id, records in jobs.records.items():
        last = jobs.final(id)
        version = max((one.after["version"] for one in records if one.after), default=0)
        task = records[0].after.get("task")
        result = last.get("result")
        done = last.get("state") == "succeeded"
        if done and task not in facts.CONTINUED and result not in (version, facts.BY_OPERATOR):
            yield Violation("I", id, f"its result is of version {result}, the last claim had {version}")
        entries = jobs.loaded.ledger.get(id, [])
        if task == "pay" and entries != ([version] if done and result != facts.BY_OPERATOR else []):
            yield Violation("J", id, f"{last.get('state')} at version {version}, the ledger has {entries}")


def handlers_follow_claims(jobs: Jobs) -> Iterator[Violation]:
    """K: each attempt starts at most once, and only after its claim. L: two attempts of a job overlap only if the
    first worker lost its lease, or a fault struck it."""
    for id, starts in jobs.starts.items():
        claimed = {one.after["version"]: one for one in claims(jobs.records[id])}
        for event in starts:
            claim = claimed.get(event.fields["version"])
            if claim is None:
                yield Violation("K", id, f"version {event.fields['version']} started and was never claimed")
            elif event.at < jobs.local(claim) - CLOCK:
                yield Violation("K", id, f"version {event.fields['version']} started before its claim")
        numbers = Counter(one.fields["version"] for one in starts)
        twice = [version for version, number in numbers.items() if number > 1]
        if twice:
            yield Violation("K", id, f"versions {twice} started twice")
        yield from _overlaps(jobs, id, sorted(starts, key=lambda one: one.fields["version"]))


def _overlaps(jobs: Jobs, id: str, starts: list[Event]) -> Iterator[Violation]:
    for first, second in pairwise(starts):
        end = jobs.ends.get((id, first.fields["version"]))
        is_over = end is not None and end.at <= second.at + CLOCK
        attempt = jobs.attempts.get((id, first.fields["version"]))
        is_lost = attempt is not None and attempt.after["outcome"] == "lost"  # H judges whether a fault explains that
        worker = first.fields["worker"]
        is_explained = is_lost or jobs.had_to_release(first) or jobs.is_excused(worker, first.at, second.at)
        if not is_over and not is_explained:
            yield Violation("L", id, f"version {second.fields['version']} started while {worker} ran the one before")


def attempts_have_leases(jobs: Jobs) -> Iterator[Violation]:
    """S: an attempt starts only while its lease is valid, and `attempt.check` passes only then, unless a stop of its
    process ended just then."""
    events = [*chain.from_iterable(jobs.starts.values()), *jobs.loaded.events["check"]]
    for event in events:
        id, version = event.fields["job"], event.fields["version"]
        leases = [one for one in jobs.leases.get((id, version), ()) if jobs.local(one) <= event.at + CLOCK]
        late = event.at - jobs.expiry(leases[-1]) if leases else 0.0
        if late > CLOCK and not jobs.has_just_recovered(event):
            word = "started" if event.event == "start" else "was checked"
            yield Violation("S", id, f"version {version} {word} {late:.3f} s after its lease had expired")


def jobs_have_followers(jobs: Jobs) -> Iterator[Violation]:
    """T: a job that continues its chain has one successor, and each failure for good has its follow-up."""
    added = [one for one in jobs.loaded.records if one.event == "insert" and one.table == "jobs"]
    positions = Counter((one.after["chain"], one.after["position"]) for one in added)
    for one in added:
        if positions[one.after["chain"], one.after["position"]] > 1:
            yield Violation("T", one.job, f"another job has position {one.after['position']} of its chain, too")
    for id in jobs.records:
        over = jobs.final(id)
        if over.get("continued") and (over["chain"], over["position"] + 1) not in positions:
            yield Violation("T", id, "its chain goes on, and there is no next job")
    failures = [id for id, records in jobs.records.items() for one in records if _fails(one)]
    follow_ups = [id for id, records in jobs.records.items() if records[0].after.get("task") == facts.FOLLOW_UP]
    if len(failures) != len(follow_ups):
        yield Violation("T", "", f"{len(failures)} failures for good have {len(follow_ups)} follow-ups")


def _fails(one: Record) -> bool:
    has_failed = one.after.get("state") == "failed" and one.before.get("state") == "running"
    return has_failed and one.after["task"] == facts.FOLLOWED


def times_are_kept(jobs: Jobs) -> Iterator[Violation]:
    """M: no job is claimed before its time, by the clock of the database, if that is not set back meanwhile."""
    for id, records in jobs.records.items():
        for one in claims(records):
            early = one.before.get("run_at", 0.0) - one.at
            if early > CLOCK and not jobs.loaded.clock_was_moved:
                yield Violation("M", id, f"claimed {early:.3f} s too early")


def limits_are_kept(jobs: Jobs) -> Iterator[Violation]:
    """N: no more jobs of a queue, of a group or at a target run at once than allowed."""
    running: dict[str, tuple[LimitKey, ...]] = {}
    counts: Counter[LimitKey] = Counter()
    for one in jobs.loaded.records:
        if one.table != "jobs":
            continue
        was, now = one.before.get("state") == "running", one.after.get("state") == "running"
        if was and not now:
            counts.subtract(running.pop(one.job, ()))
        elif now and not was:
            keys = limit_keys(one.after)
            running[one.job] = keys
            counts.update(keys)
            for key in keys:
                limit = allowed(key)
                if limit is not None and counts[key] > limit:
                    yield Violation("N", one.job, f"{counts[key]} run at once of {key}, {limit} may, record {one.seq}")


def targets_are_in_order(jobs: Jobs) -> Iterator[Violation]:
    """O: while a job occupies its target, no other job does."""
    holders: dict[str, str] = {}
    for one in jobs.loaded.records:
        if one.table != "jobs":
            continue
        target = one.after.get("target") or one.before.get("target")
        if not target:
            continue
        if one.after.get("holds"):
            if holders.setdefault(target, one.job) != one.job:
                yield Violation(
                    "O", one.job, f"it occupies target {target}, and {holders[target]} does, record {one.seq}"
                )
        elif holders.get(target) == one.job:
            del holders[target]


def operators_are_obeyed(jobs: Jobs) -> Iterator[Violation]:
    """P: a job whose cancel was answered with "cancelled" is cancelled, and starts no more. One that an operator has
    completed is completed; if it was running, its worker may learn of it late."""
    for event in jobs.loaded.events["verb"]:
        about = event.fields
        if about["phase"] != "ok" or about["verb"] not in ("cancel", "complete"):
            continue
        wanted = about["state"]
        if wanted in OVER and jobs.state(about["job"]) != wanted:
            yield Violation("P", about["job"], f"{about['verb']} returned {wanted}; it is {jobs.state(about['job'])}")
        late = [one for one in jobs.starts.get(about["job"], ()) if one.at > event.at + CLOCK]
        if wanted == "cancelled" and not all(jobs.is_excused(one.fields["worker"], event.at, one.at) for one in late):
            yield Violation("P", about["job"], f"it started after {about['verb']} had returned {wanted}")


def keys_are_unique(jobs: Jobs) -> Iterator[Violation]:
    """Q: at most one job of a unique key is live; with a window, at most one is made within it."""
    live: dict[str, str] = {}
    made: dict[str, float] = {}
    for one in jobs.loaded.records:
        key = one.after.get("unique_key") or one.before.get("unique_key")
        if one.table != "jobs" or not key:
            continue
        if key.startswith(facts.REPLACED):
            continue  # one runs and one waits
        if key.startswith(facts.WINDOWED):
            if one.event == "insert":
                since = one.after["created_at"] - made.get(key, 0.0)
                if since < facts.WINDOW - STATEMENT and not jobs.loaded.clock_was_moved:
                    yield Violation("Q", one.job, f"made {since:.3f} s after another of key {key}")
                made[key] = one.after["created_at"]
            continue
        if one.after and one.after["state"] not in ENDED:
            if live.setdefault(key, one.job) != one.job:
                yield Violation("Q", one.job, f"it is live with key {key}, and {live[key]} is, record {one.seq}")
        elif live.get(key) == one.job:
            del live[key]


def refused_calls_do_nothing(jobs: Jobs) -> Iterator[Violation]:
    """CC: a job is cancelled, or completed from outside, only by a call that was not refused."""
    phases: dict[tuple[object, ...], tuple[str, str, str]] = {}
    for event in jobs.loaded.events["verb"]:
        about = event.fields
        phases[event.by, event.pid, about["call"]] = about["job"], about["verb"], about["phase"]
    acted = {(job, verb) for job, verb, phase in phases.values() if phase != "failed"}
    for id in jobs.records:
        over = jobs.final(id)
        if over.get("state") == "cancelled" and (id, "cancel") not in acted:
            yield Violation("CC", id, "it is cancelled, and no call to cancel it succeeded")
        is_completed = over.get("state") == "succeeded" and over.get("result") == facts.BY_OPERATOR
        if is_completed and (id, "complete") not in acted:
            yield Violation("CC", id, "it is completed from outside, and no call to do so succeeded")


def ticks_fire_once(jobs: Jobs) -> Iterator[Violation]:
    """DD: a schedule fires once at each of its times."""
    fired: set[float] = set()
    for id, records in jobs.records.items():
        row = records[0].after
        if row.get("task") == facts.SCHEDULED and not jobs.loaded.clock_was_moved:
            if row["run_at"] in fired:
                yield Violation("DD", id, f"there is another job for {row['run_at']}")
            fired.add(row["run_at"])


def everything_ends(jobs: Jobs) -> Iterator[Violation]:
    """R: after the faults, every job ends."""
    for id in jobs.records:
        state = jobs.state(id)
        if state is not None and state not in ENDED:
            yield Violation("R", id, f"it is {state} at the end: {jobs.final(id)}")


CHECKS: tuple[Invariant, ...] = (
    nothing_is_lost, nothing_is_made_up, transitions_are_legal, leases_are_exclusive, leases_are_not_taken_early,
    only_the_owner_settles, handlers_follow_claims, attempts_have_leases, jobs_have_followers, times_are_kept,
    limits_are_kept, targets_are_in_order, operators_are_obeyed, keys_are_unique,
    refused_calls_do_nothing, ticks_fire_once, claims_follow_the_order, everything_ends,
    *MORE_CHECKS, *WAITING_CHECKS,
)  # fmt: skip


def check(jobs: Jobs) -> list[Violation]:
    return [violation for invariant in CHECKS for violation in invariant(jobs)]
