"""Chains: what they look like, and what is said to a whole one."""

# ruff: noqa: F811 (fixtures are imported, and asked for by their names)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from leasehold import App, Chain, State
from leasehold.tasks import PlainTask
from tests.homes import _any_schema, app, claim, fail, home, ids, succeed  # noqa: F401


@pytest.fixture
def task(app: App) -> PlainTask[..., Any]:
    @app.task
    def work(value: Any = None) -> Any:
        return value

    return work


def grow(app: App, task: PlainTask[..., Any], length: int) -> list[str]:
    """A chain of so many jobs, the last of them queued; their ids."""
    grown = [task.enqueue(0).id]
    for number in range(1, length):
        draft = task.draft(number)
        app.client.complete(grown[-1], f"step {number}", continue_with=draft)
        grown.append(draft.id)
    return grown


def test_a_chain_is_a_sequence_of_its_jobs_with_a_state_and_a_result(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 3)
    chain = app.client.chain(grown[1])
    assert isinstance(chain, Chain)
    assert isinstance(chain, Sequence)
    assert [job.id for job in chain] == ids(list(chain[0:3])) == grown
    assert (len(chain), chain.id, chain[-1], chain.last.id) == (3, grown[0], chain.last, grown[2])
    assert (chain.state, chain.result) == (State.QUEUED, None)
    assert repr(chain) == f"<chain {grown[0]} queued: work -> work -> work>"
    succeed(app, claim(app)[0], '"end"')
    over = app.client.chain(grown[2])
    assert (over.state, over.result) == (State.SUCCEEDED, '"end"')
    assert over == app.client.chain(grown[0])
    assert over != chain


def test_a_chain_that_failed_or_lost_its_end_has_no_result(app: App, task: PlainTask[..., Any]) -> None:
    grown = grow(app, task, 2)
    fail(app, claim(app)[0])
    assert (app.client.chain(grown[0]).state, app.client.chain(grown[0]).result) == (State.FAILED, None)
    app.client.delete(grown[1])
    assert app.client.chain(grown[0]).result is None
