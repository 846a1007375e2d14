"""The decisions by themselves: no store, no clock."""

from __future__ import annotations

from typing import Any

import pytest

from relet._core import machine
from relet._core.job import Outcome, Policy, Raised, Released, Request, Snoozed, State, Succeeded, Wait
from relet._core.machine import TRANSITIONS, Running
from relet.errors import InvalidTransition


def running(*, request: Request | None = None, target: str | None = None, **facts: Any) -> Running:
    policy = Policy(**facts.pop("policy", {}))
    return Running(
        "id", facts.get("attempt", 1), facts.get("losses", 0), facts.get("alone", False), request, target, policy
    )


def test_the_table_is_closed() -> None:
    for verb, (sources, targets, *_) in TRANSITIONS.items():
        assert sources or verb == "enqueue"
        assert targets or verb == "delete"
    over = {state for state in State if state.over}
    for verb, (sources, *_) in TRANSITIONS.items():
        assert verb == "delete" or not sources & over, f"{verb} would wake the dead"


@pytest.mark.parametrize("verb", TRANSITIONS)
@pytest.mark.parametrize("state", State)
def test_transitions_that_are_not_in_the_table_are_refused_with_the_state_in_the_message(
    verb: str, state: State
) -> None:
    if state in TRANSITIONS[verb].sources:
        machine.check("id", verb, state)
    else:
        with pytest.raises(InvalidTransition, match=f"cannot {verb} job id: it is {state}"):
            machine.check("id", verb, state)


@pytest.mark.parametrize(
    ("outcome", "state", "attempt", "delay"),
    [
        (Succeeded(), State.SUCCEEDED, 2, 0.0),
        (Raised("x"), State.PENDING, 2, 0.5),  # 0.5 * 2 ** 1, half of it by chance
        (Raised("x", delay=7.0), State.PENDING, 2, 7.0),
        (Raised("x", fatal=True), State.FAILED, 2, 0.0),
        (Snoozed(9.0), State.PENDING, 1, 9.0),
        (Released(), State.QUEUED, 1, 0.0),
        (Released(pause=True), State.PAUSED, 1, 0.0),
    ],
)
def test_each_outcome_leads_to_its_state(outcome: Outcome, state: State, attempt: int, delay: float) -> None:
    change = machine.settle(running(attempt=2), outcome, 0.5)
    assert (change.state, change.attempt, change.delay) == (state, attempt, delay)
    assert (change.wait is Wait.TIME) == (state is State.PENDING)
    assert change.keeps_token


def test_the_last_attempt_that_fails_fails_the_job() -> None:
    assert machine.settle(running(attempt=4), Raised("x"), 0.5).state is State.FAILED


@pytest.mark.parametrize(("request_", "state"), [("cancel", State.CANCELLED), ("pause", State.PAUSED)])
def test_a_request_decides_where_every_exit_but_success_ends(request_: Request, state: State) -> None:
    job = running(request=request_, target="x")
    for outcome in (Raised("x"), Raised("x", fatal=True), Snoozed(9.0), Released()):
        change = machine.settle(job, outcome, 0.5)
        assert (change.state, change.wait, change.holds) == (state, None, state is State.PAUSED)
    assert machine.reap(job, 0.5).state is state
    assert machine.settle(job, Succeeded(), 0.5).state is State.SUCCEEDED


def test_the_first_loss_waits_for_nothing_and_later_ones_back_off() -> None:
    first = machine.reap(running(), 1.0)
    assert (first.state, first.losses, first.delay, first.keeps_token) == (State.QUEUED, 1, 0.0, False)
    second = machine.reap(running(attempt=2, losses=1), 1.0)
    assert (second.state, second.losses, second.delay) == (State.PENDING, 2, 0.5)


def test_losses_in_company_do_not_fail_a_job_and_one_alone_does() -> None:
    spent = running(attempt=4, losses=3)
    change = machine.reap(spent, 1.0)
    assert (change.state, change.attempt) == (State.PENDING, 3), "one more, to be run alone"
    alone = machine.reap(running(attempt=4, losses=3, alone=True), 1.0)
    assert alone.state is State.FAILED
    assert "worker lost" in (alone.error or "")


def test_a_task_may_want_to_fail_at_the_first_loss() -> None:
    assert machine.reap(running(policy={"on_expired": "fail"}), 1.0).state is State.FAILED


def test_a_failed_job_goes_on_holding_its_target_unless_its_task_says_otherwise() -> None:
    assert machine.settle(running(target="x"), Raised("x", fatal=True), 0.5).holds
    assert not machine.settle(
        running(target="x", policy={"on_failure": "continue"}), Raised("x", fatal=True), 0.5
    ).holds
    assert not machine.settle(running(), Raised("x", fatal=True), 0.5).holds


@pytest.mark.parametrize("choice", ["hold", "cancel", "run"])
def test_the_end_of_a_chain_decides_about_a_job_that_waits(choice: Any) -> None:
    assert machine.decide_dependency(State.SUCCEEDED, choice) == "free"
    for live in (State.PENDING, State.QUEUED, State.RUNNING, State.PAUSED):
        assert machine.decide_dependency(live, choice) == "hold"
    for end in (State.FAILED, State.CANCELLED, None):
        assert machine.decide_dependency(end, choice) == {"hold": "hold", "cancel": "cancel", "run": "free"}[choice]


def test_a_resumed_job_waits_for_jobs_then_for_its_time_then_for_its_target() -> None:
    assert machine.resume(True, True, True) is Wait.JOBS
    assert machine.resume(False, True, True) is Wait.TIME
    assert machine.resume(False, False, True) is Wait.TARGET
    assert machine.resume(False, False, False) is Wait.TIME
