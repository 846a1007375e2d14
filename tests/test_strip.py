"""keep_payloads: jobs that ended long ago lose their arguments and results, and keep their history."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from relet import App, Attempt, Fail, InvalidInput
from tests.databases import inventory
from tests.harness import harness_of
from tests.plugin.command_line import CommandLine
from tests.shops import CliShop
from tests.worker.working import until, working

WORDS = "a secret"


def run_some(app: App) -> tuple[str, str, str]:
    """The ids of a job that has succeeded after a retry, one that has failed, and one that waits."""

    @app.task(max_attempts=2)
    def work(attempt: Attempt, text: str) -> str:
        attempt.step("first", lambda: text)
        if attempt.job.attempt == 1:
            raise ValueError(text)
        return text

    @app.task
    def refuse(text: str) -> None:
        raise Fail(text)

    app.client.migrate()
    done, failed = work.enqueue(WORDS), refuse.enqueue(WORDS)
    waiting = work.using(delay=3600).enqueue(WORDS)
    with working(app):
        until(lambda: app.client.get(done).state == "succeeded")  # type: ignore[union-attr]
        until(lambda: app.client.get(failed).state == "failed")  # type: ignore[union-attr]
    time.sleep(0.01)  # the ids hold milliseconds
    return done.id, failed.id, waiting.id


def test_only_jobs_that_are_over_lose_their_payloads(app: App) -> None:
    done, failed, waiting = run_some(app)
    assert app.client.prune(keep_payloads=3600).stripped == 0
    assert app.client.prune(keep_payloads=timedelta(0)).stripped == 1
    assert app.client.prune(keep_payloads=0).stripped == 0
    found = app.client.get(done)
    assert found is not None
    assert (found.state, found.payload, found.result, found.task) == ("succeeded", None, None, "work")
    assert [(one.outcome, one.error) for one in app.client.attempts(done)] == [("retried", None), ("succeeded", None)]
    assert app.client.steps(done) == []
    assert app.client.result(done) is None
    for kept in (failed, waiting):
        assert app.client.get(kept).payload == {"text": WORDS}  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match="are no longer stored"):
        app.client.rerun(done)


def test_a_job_whose_result_is_awaited_keeps_it(app: App) -> None:
    app.task(give)
    app.client.migrate()
    first = app.tasks["give"].enqueue()
    app.tasks["give"].using(depends_on=[first]).enqueue()
    (held,) = harness_of(app).claim(1)
    app.client.complete(held.id, "kept")
    time.sleep(0.01)
    assert app.client.prune(keep_payloads=0).stripped == 0
    assert app.client.result(first) == "kept"


def give() -> str:
    return "given"


@pytest.mark.long
def test_many_jobs_are_stripped_in_steps(app: App) -> None:
    app.task(give)
    app.client.migrate()
    jobs = app.client.enqueue_many([app.tasks["give"].draft() for _ in range(2500)])
    app.client.bulk("cancel", task="give")
    time.sleep(0.01)
    steps: list[int] = []
    assert app.client.prune(keep_payloads=0, on_step=lambda so_far: steps.append(so_far.stripped)).stripped == 2500
    assert len(set(steps)) > 2
    assert inventory(app._store())["finished"] == len(jobs)


def test_a_worker_strips_as_it_prunes(app: App) -> None:
    done, *_ = run_some(app)
    with working(app, keep_payloads=0.001) as running:
        running._sessions[0].maintenance.pruner.prune()
    assert app.client.get(done).payload is None  # type: ignore[union-attr]


def test_the_command_strips(typed: CommandLine, any_shop: CliShop) -> None:
    jobs = any_shop.many(2)
    for job in jobs:
        any_shop.client.cancel(job)
    time.sleep(0.01)
    code, printed = typed(any_shop.folder, "prune", "shop:app", "--keep-payloads", "0")
    assert (code, printed.splitlines()[-1]) == (0, "Removed the arguments and results of 2 jobs.")
    stripped = any_shop.client.get(jobs[0])
    assert stripped is not None
    assert stripped.payload is None
