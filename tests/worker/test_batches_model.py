"""Generated batches on a running worker: whatever a handler does with its jobs, each ends as its own attempts say.

The handler follows the plan of each job, and records what that makes of the attempt. Which jobs share a call is the
worker's choice.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from relet import App, Backoff, Fail, Retry
from relet._store.flows import lease
from relet.types import BatchItem
from tests.harness import harness_of
from tests.plugin.selection import rounds
from tests.worker.working import until, working

SIZE = 4
ATTEMPTS = 3
SOON = Backoff(base=0.001, max=0.001)
EXAMPLES = 500 if os.environ.get("RELET_HYPOTHESIS") == "thorough" else rounds(4, all=8)


class Plan(Struct, frozen=True):
    """The actions of the handler on a job, by attempt; the last is repeated. `lost`: its first worker was lost."""

    actions: list[str]
    lost: bool = False


class Recorder:
    """The handler and its records: the calls, and by job the outcome that each attempt must have."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls: list[list[str]] = []
        self.outcomes: dict[str, dict[int, str]] = defaultdict(dict)

    def run(self, items: list[BatchItem[Plan]]) -> None:
        with self.lock:
            self.calls.append([item.attempt.job.id for item in items])
        left = {item.attempt.job.id: item.attempt.job.attempt for item in items}
        end = "succeeded"
        try:
            for item in items:
                actions = item.value.actions
                action = actions[min(item.attempt.job.attempt, len(actions)) - 1]
                if action == "raise":
                    end = "retried"
                    raise ValueError("no more")
                if action != "return":
                    self._record(item.attempt.job.id, left.pop(item.attempt.job.id), act(item, action))
        finally:
            for id, number in left.items():
                self._record(id, number, end)

    def _record(self, id: str, number: int, outcome: str) -> None:
        with self.lock:
            assert number not in self.outcomes[id], f"attempt {number} of {id} ran twice"
            self.outcomes[id][number] = outcome


def act(item: BatchItem[Plan], action: str) -> str:
    """Settle one job. Returns the outcome of its attempt, unless it was the last one that the policy allows."""
    if action == "succeed":
        item.succeed(item.value.actions)
        return "succeeded"
    item.fail({"fail": ValueError("again"), "retry": Retry("later", delay=0.0), "fatal": Fail("never")}[action])
    return "failed" if action == "fatal" else "retried"


plans = st.builds(
    Plan,
    st.lists(st.sampled_from(["return", "succeed", "fail", "retry", "fatal", "raise"]), min_size=1, max_size=ATTEMPTS),
    st.sampled_from([False, False, False, True]),
)


@pytest.fixture(params=["thread", "loop"])
def recorder(app: App, request: pytest.FixtureRequest) -> Recorder:
    recorder = Recorder()

    def handle(items: list[BatchItem[Plan]]) -> None:
        recorder.run(items)

    async def ahandle(items: list[BatchItem[Plan]]) -> None:
        await asyncio.sleep(0)
        recorder.run(items)

    handler: Any = handle if request.param == "thread" else ahandle
    app.batch_task(name="handle", size=SIZE, wait=0.02, max_attempts=ATTEMPTS, backoff=SOON)(handler)
    app.client.migrate()
    return recorder


@pytest.mark.long("memory")
@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(batch=st.lists(plans, min_size=1, max_size=12))
def test_each_job_of_a_batch_ends_as_its_own_attempts_say(app: App, recorder: Recorder, batch: list[Plan]) -> None:
    lost, others = [one for one in batch if one.lost], [one for one in batch if not one.lost]
    ids = [*enqueue(app, lost), *enqueue(app, others)]
    with working(app, concurrency=10):
        until(lambda: app.client.count(state=["succeeded", "failed"]) == len(ids))
    check(app, recorder, dict(zip(ids, lost + others, strict=True)))
    for id in ids:
        app.client.delete(id)
    recorder.calls.clear()


def enqueue(app: App, plans: list[Plan]) -> list[str]:
    """Enqueue a job for each plan. A worker claims those that are to be lost, and does not renew their leases."""
    jobs = app.client.enqueue_many([app.tasks["handle"].draft(one) for one in plans])
    number = sum(one.lost for one in plans)
    assert len(harness_of(app).claim(number, lease=0.001) if number else []) == number
    while number:
        harness_of(app).record_pulse()
        number -= len(app._store().run(lease.reap, lambda: 0.5))
    return [job.id for job in jobs]


def check(app: App, recorder: Recorder, plans: dict[str, Plan]) -> None:
    for call in recorder.calls:
        assert len(call) <= SIZE
        assert len(call) == 1 or not any(plans[id].lost for id in call)
    for id, plan in plans.items():
        outcomes, job = recorder.outcomes[id], app.client.get(id)
        first, last = 1 + plan.lost, max(outcomes)
        assert sorted(outcomes) == list(range(first, last + 1))
        assert [outcomes[number] for number in range(first, last)] == ["retried"] * (last - first)
        assert outcomes[last] != "retried" or last == ATTEMPTS
        assert job is not None
        assert (job.state, job.attempt) == ("succeeded" if outcomes[last] == "succeeded" else "failed", last)
