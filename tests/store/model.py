"""The behaviour of a store, in plain dicts: the reference that `test_model.py` compares every store with.

It takes the nouns of `core.job` and answers as the flows do, in plain values. It decides for itself: nothing of
`core.machine` is used here. It knows no nudges: what nothing holds up is let go by the next promote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from relet._core.job import Draft, Lease, Outcome, Raised, Released, Snoozed, Succeeded
from relet._store.flows.claim_scope import Scope
from relet._store.flows.maintenance import BEAT_EVERY, PERIOD
from relet.errors import InvalidInput, InvalidTransition, JobNotFound, KeyTaken
from tests.store.graph import circular

OVER = ("succeeded", "cancelled")
HIDDEN = ("draft", "seq", "alone", "token", "history", "dependencies", "refreshed_at")
HALF = 0.5  # the source of randomness of the stores


End = tuple[str | None, str | None, str | None]  # how a chain ended, its result, its first job's task


@dataclass
class Row:
    draft: Draft[Any]
    chain: str
    position: int
    created_at: float
    run_at: float
    seq: int
    state: str = "pending"
    wait: str | None = None
    attempt: int = 0
    losses: int = 0
    version: int = 0
    holds: bool = False
    alone: bool = False
    worker: str | None = None
    token: str | None = None
    started_at: float | None = None
    expires_at: float | None = None
    refreshed_at: float = 0.0  # when the lease was taken or renewed
    finished_at: float | None = None
    request: str | None = None
    result: str | None = None
    error: bool = False
    continued: bool = False
    progress: None = None
    awaits: None = None
    context: None = None
    renewed_at: float | None = None
    history: list[tuple[Any, ...]] = field(default_factory=list)
    dependencies: dict[str, End] = field(default_factory=dict)  # by chain

    @property
    def waits(self) -> int:
        return sum(end is None for end, _, _ in self.dependencies.values())

    def is_late(self, now: float) -> bool:
        """Whether it has not started by its `start_by`."""
        return self.draft.start_by is not None and not self.version and self.draft.start_by <= now

    def view(self, existing: bool = False) -> dict[str, Any]:
        d = self.draft
        view = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in HIDDEN}
        view |= {
            name: getattr(d, name) for name in ("id", "task", "queue", "priority", "target", "unique", "tags", "group")
        }
        view |= {"start_by": None if self.state in OVER else d.start_by, "rerun_of": d.rerun_of, "error_type": None}
        return view | {"max_attempts": d.policy.max_attempts, "existing": existing}


class Model:
    def __init__(self, new_id: Callable[[], str]) -> None:
        self.new_id = new_id  # for follow-ups
        self.jobs: dict[str, Row] = {}
        self.keys: dict[str, tuple[str, float | None]] = {}
        self.queues: dict[str, tuple[bool, int | None]] = {}
        self.group_limits: dict[tuple[str, str], int] = {}
        self.failed: list[Row] = []  # failed for good by this verb: their follow-ups are still to be enqueued
        self.touched = self.grace_until = 0.0
        self.period_from = self.uptime = self.reap_before = 0.0
        self.last = 0

    # Producers

    def enqueue(self, drafts: list[Draft[Any]], now: float, again: bool = False) -> list[dict[str, Any]]:
        if len({d.id for d in drafts}) < len(drafts):
            raise InvalidInput
        known = {d.id for d in drafts if d.id in self.jobs}
        todo = [d for d in drafts if d.id not in known]
        unknown = {id for d in todo for id in d.depends_on} - {d.id for d in todo} - self.jobs.keys()
        if circular({d.id: d.depends_on for d in todo}):
            raise InvalidInput
        if unknown:
            raise JobNotFound(*sorted(unknown))
        if circular(self._links() | {d.id: self._chains_of(d) for d in todo}):
            raise InvalidInput  # a job still waits for a job of that id that was deleted
        keys_before = dict(self.keys)
        place = {d.id: d.id for d in drafts}  # which job stands for a draft: its own, or the holder of its key
        for d in todo:
            place[d.id] = self._take_key(d, now)
        if gone := [d for d in todo if place[d.id] not in self.jobs and place[d.id] not in place]:
            self.keys = keys_before
            # Its window goes on, but the job was deleted: there is none to return.
            raise KeyTaken(str(gone[0].unique), place[gone[0].id])
        for d in todo:
            if place[d.id] == d.id:
                self._insert(d, d.id, 0, now, place)
        found = {d.id for d in drafts if place[d.id] != d.id or (d.id in known and not (again and d.fresh))}
        return [self.jobs[place[d.id]].view(existing=d.id in found) for d in drafts]

    def _take_key(self, d: Draft[Any], now: float, heir_of: str | None = None) -> str:
        """Take a draft's key, if it can be had. Returns who has it then."""
        if d.unique is None:
            return d.id
        holder, until = self.keys.get(d.unique, (heir_of, None))
        if holder == heir_of or (until is not None and until <= now):
            self.keys[d.unique] = (d.id, None if d.unique_for is None else now + d.unique_for)
            return d.id
        return str(holder)

    def _links(self) -> dict[str, set[str]]:
        """Which chains wait for which."""
        return {row.chain: {on for on, (end, *_) in row.dependencies.items() if end is None} for row in self._live()}

    def _chains_of(self, d: Draft[Any]) -> set[str]:
        return {self.jobs[id].chain if id in self.jobs else id for id in d.depends_on}

    def _refuse(
        self, row: Row, successor: Draft[Any] | None, now: float, fellows: dict[str, set[str]] | None = None
    ) -> Exception | None:
        """What stands against a draft continuing a job. Its key is taken, if nothing does.

        `fellows`: what those that are stored along with it wait for.
        """
        if successor is None:
            return None
        if unknown := [id for id in successor.depends_on if id not in self.jobs]:
            return JobNotFound(*unknown)
        fellows = {} if fellows is None else fellows
        links = fellows | {row.chain: self._chains_of(successor)}
        if circular(self._links() | links):
            return InvalidInput()
        fellows.update(links)
        holder = self._take_key(successor, now, row.draft.id)
        return KeyTaken(successor.unique or "", holder) if holder != successor.id else None

    def _insert(
        self, d: Draft[Any], chain: str, position: int, now: float, place: dict[str, str] | None = None
    ) -> None:
        due = d.run_at if d.run_at is not None else now + (d.delay or 0)
        row = self.jobs[d.id] = Row(d, chain, position, now, due, self._next())
        for id in d.depends_on:
            id = (place or {}).get(id, id)
            row.dependencies[self.jobs[id].chain if id in self.jobs else id] = (None, None, None)
        row.wait = "jobs" if row.waits else "time" if due > now else "target" if d.target else None
        row.state = "pending" if row.wait else "queued"

    def _next(self) -> int:
        self.last += 1
        return self.last

    # Upkeep

    def promote(self, now: float) -> tuple[list[str], list[str], float | None]:
        late = [row for row in self._live() if row.is_late(now)]
        for row in late:
            self._finish(row, "cancelled", now, error=True)
        doomed = late + self._decide_all([chain for row in self._live() for chain in row.dependencies], now)
        ready = []
        for row in sorted(self._live(), key=lambda row: (row.run_at, row.seq)):
            if row.wait == "time" and row.run_at <= now:
                if row.draft.target is None or row.holds:
                    ready.append(row)
                else:
                    row.wait = "target"
        held = {row.draft.target for row in self._live() if row.holds}
        for row in sorted(self._live(), key=lambda row: row.seq):
            if row.wait == "target" and row.draft.target not in held:
                held.add(row.draft.target)
                if row.state == "pending":  # a paused one keeps its place, and those behind it wait
                    ready.append(row)
        for row in ready:
            row.state, row.wait, row.holds, row.seq = "queued", None, row.draft.target is not None, self._next()
        waits = [row.run_at - now for row in self._live() if row.wait == "time"]
        waits += [
            row.draft.start_by - now for row in self._live() if row.draft.start_by is not None and not row.version
        ]
        due = min(waits, default=None)
        return sorted(row.draft.id for row in ready), sorted(row.draft.id for row in doomed), due

    def _decide_all(self, chains: list[str], now: float) -> list[Row]:
        """Jobs that wait for these chains learn how they stand. Returns the jobs that are cancelled for it."""
        ends = {chain: self._end(chain) for chain in chains}
        doomed = [row for row in self._live() if self._decide(row, ends)]
        for row in doomed:
            self._finish(row, "cancelled", now, error=True)
        return doomed

    def _decide(self, row: Row, ends: dict[str, End]) -> bool:
        """Close the dependencies of chains that have ended. True: the job is to be cancelled for one of them."""
        choice, doomed = row.draft.policy.on_dependency_failure, False
        for chain in [chain for chain, (known, *_) in row.dependencies.items() if known is None and chain in ends]:
            end = ends[chain][0]
            bad = end in ("failed", "cancelled", "deleted")
            doomed |= bad and choice == "cancel"
            if end == "succeeded" or (bad and choice == "run"):
                row.dependencies[chain] = ends[chain]
        if row.wait == "jobs" and not row.waits:
            row.wait = "time"
        return doomed

    def _end(self, chain: str) -> End:
        """The state and result of the last job of a chain, and the task of its first."""
        last = [row for row in self.jobs.values() if row.chain == chain and not row.continued]
        task = self.jobs[chain].draft.task if chain in self.jobs else None
        return (
            (last[0].state, last[0].result if last[0].state == "succeeded" else None, task)
            if last
            else ("deleted", None, task)
        )

    def beat(self, grace: float, now: float) -> float | None:
        if self.touched >= now - BEAT_EVERY:
            return None
        if self.touched < now - 3:
            if any(row.expires_at is not None and row.refreshed_at <= now - 3 for row in self._live()):
                self.grace_until = now + grace
        else:
            self.uptime += now - self.touched
        if self.uptime >= PERIOD * grace:
            self.reap_before, self.period_from, self.uptime = self.period_from, now, 0.0
        self.touched = now
        return max(self.grace_until - now, 0.0)

    def reap(self, now: float) -> list[tuple[str, str]]:
        if self.touched <= now - 3:
            return []
        before = self.reap_before if self.grace_until > now else now
        expired = [row for row in self._live() if row.expires_at is not None and row.expires_at <= before]
        for row in expired:
            policy, losses = row.draft.policy, row.losses + 1
            spent = row.attempt >= policy.max_attempts
            attempt = policy.max_attempts - 1 if spent else row.attempt
            if policy.on_expired == "fail" or (spent and row.alone):
                self._leave(row, "lost", "failed", row.attempt, losses, None, True, now)
            elif losses == 1:
                self._leave(row, "lost", "queued", attempt, losses, None, True, now)
            else:
                self._leave(row, "lost", "pending", attempt, losses, policy.backoff.delay(losses - 1, HALF), True, now)
            row.token = None
        self._follow_up(now)
        return sorted((row.draft.id, row.state) for row in expired)

    # Workers

    def claim(
        self, worker: str, token: str, scopes: list[Scope], tasks: list[str], now: float, *,
        want: int, lease: float, slots: int | None, rescue: bool, alone: bool, chosen: Collection[str],
    ) -> tuple[list[dict[str, Any]], bool, bool]:  # fmt: skip
        """`chosen`: the jobs that a store has claimed. Where groups have limits, whose turn it is is for the store to
        say, and its choice is checked; everywhere else the model chooses."""
        left = {s.queue: s.want for s in scopes}
        first = next((n for n, queue in enumerate(left) if self._limited([queue])), len(left))
        seen: set[int] = set()

        def take(queues: list[str], kind: int, most: int) -> list[Row]:
            limits = self._limited(queues)
            if limits:
                self.reap(now)
            running = [row.draft.queue for row in self._live() if row.state == "running"]
            whole = min(most, limits.get("*", 999) - len(running))
            if whole > 0:  # else no step looks again, after reaping, at jobs that wait: the next claim does
                seen.update(self._waiting(queues, tasks))
            taken: list[Row] = []
            for queue in queues:
                room = min(left[queue], limits.get(queue, 999) - running.count(queue), whole - len(taken))
                line = [row for row in self._live() if row.state == "queued" and row.draft.queue == queue]
                line = [row for row in line if row.draft.task in tasks and min(row.losses, 2) == kind]
                line = sorted((row for row in line if not row.is_late(now)), key=_order)
                room = 0 if self._paused(queue) else max(room, 0)
                if self._limits_by_group(queue):
                    line = self._checked_choice(queue, line, room, chosen)
                for row in line[:room]:
                    self._start(row, worker, token, lease, alone, now)
                    left[queue] -= 1
                    taken.append(row)
            return taken

        def of_kind(kind: int, most: int, at_once: int) -> list[Row]:
            """Queues before the first with a limit, then the others: only who asks for limited ones pays for it."""
            seen.update(self._waiting(list(left), tasks))
            found = take(list(left)[:first], kind, most)
            room = min(most, at_once) - len(found)
            if first < len(left) and room > 0:
                found += take(list(left)[first:], kind, room)
            return found

        got: list[Row] = []
        if alone:
            got += take(list(left), 2, 1)
            seen.clear()  # a worker that runs nothing else does not ask
        else:
            for kind in (1, 0) if rescue else (0, 1):
                room = want - len(got)
                at_once = room if slots is None else max(slots - len(got), 0)
                most = min(room, at_once) if kind else room
                if most > 0 and (not kind or rescue or 1 in seen):
                    got += of_kind(kind, most, at_once)
        got.sort(key=lambda row: (row.losses > 0, _order(row)))
        return [row.view() | {"token": token} for row in got], 1 in seen, 2 in seen

    def _waiting(self, queues: list[str], tasks: list[str]) -> set[int]:
        """The kinds of jobs that lost a worker before and wait where a worker that knows these tasks may claim them."""
        queued = [row for row in self._live() if row.state == "queued" and row.losses and row.draft.task in tasks]
        return {min(row.losses, 2) for row in queued if row.draft.queue in queues and not self._paused(row.draft.queue)}

    def _limits_by_group(self, queue: str) -> dict[str, int]:
        return {group: limit for (of, group), limit in self.group_limits.items() if of == queue}

    def _checked_choice(self, queue: str, line: list[Row], room: int, chosen: Collection[str]) -> list[Row]:
        """The chosen jobs of a queue: of each group the first to wait, none beyond its limit, and no fewer than fit."""
        limits = self._limits_by_group(queue)
        running = Counter(
            row.draft.group for row in self._live() if row.state == "running" and row.draft.queue == queue
        )
        picked = [row for row in line if row.draft.id in chosen]
        assert len(picked) <= room, (queue, room, picked)
        for group in {row.draft.group for row in line}:
            of_group = [row for row in line if row.draft.group == group]
            number = sum(row.draft.id in chosen for row in of_group)
            limit = None if group is None else limits.get(group, limits.get("*"))
            free = len(of_group) if limit is None else max(limit - running[group], 0)
            assert number <= free, (queue, group, limit, picked)
            assert of_group[:number] == [row for row in picked if row.draft.group == group], (queue, group, picked)
            assert number == min(free, len(of_group)) or len(picked) == room, (queue, group, limit, picked)
        return picked

    def _paused(self, queue: str) -> bool:
        return self.queues.get(queue, (False, None))[0]

    def _limited(self, queues: list[str]) -> dict[str, int]:
        """The limits that a claim from these queues must keep."""
        by_group = {queue: 999 for queue in queues if self._limits_by_group(queue)}
        whole = {q: n for q in (*queues, "*") if queues and (n := self.queues.get(q, (False, None))[1]) is not None}
        return by_group | whole

    def _start(self, row: Row, worker: str, token: str, lease: float, alone: bool, now: float) -> None:
        row.state, row.worker, row.token, row.alone, row.started_at = "running", worker, token, alone, now
        row.expires_at, row.refreshed_at = now + (row.draft.policy.lease or lease), now
        row.renewed_at = None
        row.attempt += 1
        row.version += 1

    def renew(self, worker: str, leases: list[Lease], lease: float, now: float) -> tuple[Any, ...]:
        running = {Lease(row.draft.id, row.token or ""): row for row in self._live() if row.state == "running"}
        for row in (running[one] for one in leases if one in running):
            row.expires_at, row.refreshed_at = now + (row.draft.policy.lease or lease), now
            row.renewed_at = now
        strangers = sorted(one for one, row in running.items() if row.worker == worker and one not in leases)
        renewed = {one: running[one].request for one in leases if one in running}
        return renewed, [one for one in leases if one not in running], strangers

    def settle(self, outcomes: list[tuple[Lease, Outcome]], now: float) -> list[tuple[str, str | None]]:
        mine = [(self.jobs[x.id], o) for x, o in outcomes if self.owns(x)]
        done = [(row, o.continue_with) for row, o in mine if isinstance(o, Succeeded)]
        links: dict[str, set[str]] = {}
        refused = {row.draft.id for row, successor in done if self._refuse(row, successor, now, links)}
        for row, outcome in sorted(mine, key=lambda pair: not isinstance(pair[1], Succeeded)):
            if row.draft.id in refused:
                self._raised(row, Raised("its successor's key is taken"), now)
            elif isinstance(outcome, Succeeded):
                self._finish(row, "succeeded", now, outcome.result, outcome.continue_with)
                row.error = False
            elif isinstance(outcome, Raised):
                self._raised(row, outcome, now)
            elif isinstance(outcome, Snoozed):
                self._leave(row, "snoozed", "pending", row.attempt - 1, row.losses, outcome.delay, False, now)
            else:
                assert isinstance(outcome, Released)
                state, why = "paused" if outcome.pause else "queued", outcome.reason is not None
                self._leave(row, "released", state, row.attempt - 1, row.losses, None, why, now)
        self._follow_up(now)
        return [(x.id, self._settled(x)) for x, _ in outcomes]

    def owns(self, lease: Lease) -> bool:
        row = self.jobs.get(lease.id)
        return row is not None and row.state == "running" and row.token == lease.token

    def _settled(self, lease: Lease) -> str | None:
        row = self.jobs.get(lease.id)
        return row.state if row is not None and row.token == lease.token and row.state != "running" else None

    def _raised(self, row: Row, outcome: Raised, now: float) -> None:
        policy = row.draft.policy
        if outcome.fatal or row.attempt >= policy.max_attempts:
            self._leave(row, "failed", "failed", row.attempt, row.losses, None, True, now)
        else:
            delay = policy.backoff.delay(row.attempt, HALF) if outcome.delay is None else outcome.delay
            self._leave(row, "retried", "pending", row.attempt, row.losses, delay, True, now)

    def _leave(
        self, row: Row, how: str, state: str, attempt: int, losses: int, delay: float | None, error: bool, now: float
    ) -> None:
        """An attempt ends otherwise than by success: a request decides where, else what happened."""
        row.error |= error
        if row.request == "cancel":
            row.losses = losses
            return self._finish(row, "cancelled", now)
        state = "paused" if row.request == "pause" else state
        row.history.append((row.version, row.attempt, row.worker, row.started_at, now, how, error))
        row.attempt, row.losses = attempt, losses
        row.worker = row.started_at = row.expires_at = row.renewed_at = row.request = None
        row.holds = row.draft.target is not None and not (
            state == "failed" and row.draft.policy.on_failure == "continue"
        )
        self._place(row, state, "time" if state == "pending" else None, now)
        if state == "pending":
            row.run_at = now + (delay or 0)
        if state == "failed":
            self._free_key(row)
            self.failed.append(row)
        return None

    def _follow_up(self, now: float) -> None:
        """Enqueue the follow-ups of the jobs that have failed for good."""
        failed, self.failed = sorted(self.failed, key=lambda row: row.draft.id), []
        for row in failed:
            choice = row.draft.policy.follow_up
            if choice is not None:
                id = self.new_id()
                draft: Draft[Any] = Draft(
                    id, choice.task, "{}", choice.queue, choice.priority, policy=choice.policy, tags=row.draft.tags
                )
                self._insert(draft, id, 0, now)

    def _place(self, row: Row, state: str, wait: str | None, now: float) -> None:
        row.state, row.wait, row.finished_at = state, wait, now if state in ("paused", "failed") else None

    def _finish(
        self, row: Row, state: str, now: float, result: str | None = None, successor: Draft[Any] | None = None,
        error: bool = False,
    ) -> None:  # fmt: skip
        row.state, row.result, row.finished_at, row.continued = state, result, now, successor is not None
        row.wait = row.expires_at = row.request = None
        row.holds, row.error = False, row.error or error
        self._free_key(row)
        if successor:
            self._insert(successor, row.chain, row.position + 1, now)

    def _free_key(self, row: Row) -> None:
        if row.draft.unique and self.keys.get(row.draft.unique) == (row.draft.id, None):
            del self.keys[row.draft.unique]

    # Operators

    def _find(self, id: str, verb: str, sources: str) -> Row:
        if id not in self.jobs:
            raise JobNotFound(id)
        if self.jobs[id].state not in sources.split():
            raise InvalidTransition(id, verb, self.jobs[id].state)
        return self.jobs[id]

    def cancel(self, id: str, now: float) -> dict[str, Any]:
        row = self._find(id, "cancel", "pending queued paused failed running")
        if row.state == "running":
            row.request = "cancel"
        else:
            self._finish(row, "cancelled", now)
        return row.view()

    def pause(self, id: str, now: float) -> dict[str, Any]:
        row = self._find(id, "pause", "pending queued running")
        if row.state == "running":
            row.request = row.request or "pause"
        else:
            due = row.wait == "time" and row.run_at <= now and row.draft.target is not None and not row.holds
            self._place(row, "paused", "target" if row.wait == "target" or due else None, now)
        return row.view()

    def resume(self, id: str, now: float) -> dict[str, Any]:
        row = self._find(id, "resume", "paused failed")
        d, ahead = row.draft, row.state == "paused" and row.wait is None and row.run_at > now
        if row.state == "failed" and d.unique is not None and (d.unique_for is None or self._held(d.unique, now)):
            holder = self._take_key(d, now)
            if holder != id:
                raise KeyTaken(d.unique, holder)
        wait = "jobs" if row.waits else "target" if d.target and not row.holds and not ahead else "time"
        self._place(row, "pending", wait, now)
        row.attempt = row.losses = 0
        if wait == "time" and not ahead:
            row.run_at = now
        return row.view()

    def _held(self, key: str, now: float) -> bool:
        return key in self.keys and (self.keys[key][1] or now + 1) > now

    def complete(self, id: str, result: str | None, successor: Draft[Any] | None, now: float) -> dict[str, Any]:
        row = self._find(id, "complete", "pending queued running paused failed")
        if error := self._refuse(row, successor, now):
            raise error
        row.token = None if row.state == "running" else row.token  # its owner did not settle it
        self._finish(row, "succeeded", now, result, successor)
        return row.view()

    def _live(self) -> list[Row]:
        return [row for row in self.jobs.values() if row.state not in OVER]


def _order(row: Row) -> tuple[int, int]:
    return -row.draft.priority, row.seq
