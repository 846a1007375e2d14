"""Tasks: what a call becomes, what is refused before anything is stored, and what comes back at the worker."""

import asyncio
import inspect
from datetime import timedelta, timezone
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from relet._attempts.attempt import Attempt
from relet._core.backoff import Backoff
from relet._core.ids import parse_id
from relet._core.job import Draft, Policy
from relet._tasks.task import Task, TaskRegistry
from relet.errors import InvalidInput, UnknownTask

if TYPE_CHECKING:
    pass

from tests.tasks.helpers import AN_ID, ANOTHER_ID, NOON, App, claimed, job_of

# Calling, and what a task knows of itself


def test_calling_a_task_calls_the_function(app: App) -> None:
    @app.task
    def plain(name: str, *, loud: bool = False) -> str:
        return name.upper() if loud else name

    @app.task
    def with_attempt(attempt: Attempt, name: str) -> str:
        return f"{name} {attempt.version}"

    assert plain("Ada", loud=True) == "ADA"
    assert with_attempt(Attempt(claimed()), "Ada") == "Ada 3"


def test_calling_an_async_task_gives_something_to_await(app: App) -> None:
    @app.task
    async def plain(name: str) -> str:
        return name

    @app.task
    async def with_attempt(attempt: Attempt, name: str) -> str:
        return f"{name} {attempt.version}"

    assert asyncio.run(plain("Ada")) == "Ada"
    assert asyncio.run(with_attempt(Attempt(claimed()), "Ada")) == "Ada 3"
    # This is how web frameworks tell whether to await what they call.
    assert inspect.iscoroutinefunction(plain.__call__)


def test_a_task_looks_like_its_function(app: App) -> None:
    def greet(name: str) -> str:
        """Say hello."""
        return name

    greet.policy = "of the function"  # type: ignore[attr-defined]
    task = app.task(greet)
    assert (task.__name__, task.__doc__, task.__module__) == ("greet", "Say hello.", __name__)
    assert task.__wrapped__ is greet
    assert inspect.signature(task) == inspect.signature(greet)
    assert repr(task) == "<task greet>"
    assert task.policy == Policy()


def test_a_task_knows_its_policy_and_its_shape(app: App) -> None:
    @app.task(
        name="billing/charge", queue="billing", priority=7, max_attempts=5, backoff=Backoff(base=1, max=60), lease=20,
        timeout=300, process=True, on_expired="fail", on_doubt="abort", on_failure="continue", on_shutdown="pause",
        on_dependency_failure="run",
    )  # fmt: skip
    def charge(attempt: Attempt) -> None: ...

    assert charge.policy == Policy(5, Backoff(base=1, max=60), 20.0, 300.0, "fail", "continue", "run")
    assert (charge.name, charge.queue, charge.priority, charge.process) == ("billing/charge", "billing", 7, True)
    assert (charge.on_doubt, charge.on_shutdown) == ("abort", "pause")
    assert (charge.is_async, charge.takes_attempt) == (False, True)


def test_without_options_a_task_has_the_defaults(app: App) -> None:
    @app.task
    async def greet() -> None: ...

    assert greet.policy == Policy()
    assert (greet.name, greet.queue, greet.priority, greet.process) == ("greet", "default", 0, False)
    assert (greet.on_doubt, greet.on_shutdown) == ("continue", "release")
    assert (greet.is_async, greet.takes_attempt) == (True, False)


def test_a_decorator_with_options_can_be_kept_and_refined(app: App) -> None:
    billing = app.task(queue="billing", max_attempts=2)

    @billing
    def first() -> None: ...

    @billing(max_attempts=9)
    def second() -> None: ...

    @app.task()
    def third() -> None: ...

    assert [(task.queue, task.policy.max_attempts) for task in (first, second, third)] == [
        ("billing", 2),
        ("billing", 9),
        ("default", 4),
    ]


@pytest.mark.parametrize("word", ["delay", "apply_async", "send", "kiq", "defer"])
def test_words_of_other_queues_are_answered_with_ours(charge: Task[..., str], word: str) -> None:
    for thing in (charge, charge.using(priority=1)):
        with pytest.raises(AttributeError, match=rf"no \.{word}\(\): use \.enqueue\(\)"):
            getattr(thing, word)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = charge.nonsense  # type: ignore[attr-defined]


# The registry


def test_tasks_are_found_by_name(app: App, charge: Task[..., str]) -> None:
    assert app.lookup("charge") is charge
    assert dict(app.tasks) == {"charge": charge}
    with pytest.raises(TypeError):
        app.tasks["other"] = charge  # type: ignore[index]


def test_an_unknown_task_is_answered_with_the_one_that_was_meant_or_all(app: App) -> None:
    with pytest.raises(UnknownTask, match="no task is named 'x'; there are none"):
        app.lookup("x")

    @app.task
    def charge() -> None: ...

    with pytest.raises(UnknownTask, match=r"'chrage'; did you mean charge\?"):
        app.lookup("chrage")
    with pytest.raises(UnknownTask, match="'x'; there are charge"):
        app.lookup("x")


def test_two_tasks_of_one_name_are_refused_with_both_places(app: App) -> None:
    @app.task
    def greet() -> None: ...

    def other() -> None: ...

    first, second = inspect.getsourcelines(greet.__wrapped__)[1], inspect.getsourcelines(other)[1]
    with pytest.raises(InvalidInput, match="two tasks are named greet") as caught:
        app.task(name="greet")(other)
    assert f"test_tasks.py:{first})" in str(caught.value)
    assert f"test_tasks.py:{second})" in str(caught.value)
    assert app.lookup("greet") is greet


def test_a_task_is_not_registered_twice(app: App, charge: Task[..., str]) -> None:
    with pytest.raises(InvalidInput, match="<task charge> is a task already"):
        app.task(name="again")(charge)  # type: ignore[call-overload]


def test_an_app_must_have_clients() -> None:
    with pytest.raises(TypeError, match="abstract"):
        TaskRegistry()  # type: ignore[abstract]


# Drafts


def test_a_draft_has_a_new_id_and_the_task_s_policy(charge: Task[..., str]) -> None:
    first, second = charge.draft("acct-7", 500), charge.draft("acct-7", 500)
    assert parse_id(first.id) != parse_id(second.id)
    assert first.fresh
    assert first == Draft(
        first.id, "charge", '{"account":"acct-7","cents":500}', queue="billing", policy=Policy(5, timeout=300.0)
    )


def test_options_end_up_in_the_draft(charge: Task[..., str]) -> None:
    draft = charge.using(
        queue="slow", priority=-5, run_at=NOON, target="acct-7", unique="inv-9", unique_for=3600, depends_on=[AN_ID],
        id=ANOTHER_ID, max_attempts=1, backoff=Backoff(base=9), timeout=None, on_expired="fail", on_failure="continue",
        on_dependency_failure="cancel",
    ).draft("acct-7")  # fmt: skip
    assert draft == Draft(
        ANOTHER_ID, "charge", '{"account":"acct-7"}', queue="slow", priority=-5, run_at=NOON.timestamp(),
        target="acct-7", unique="inv-9", unique_for=3600.0, depends_on=(AN_ID,), fresh=False,
        policy=Policy(1, Backoff(base=9), None, None, "fail", "continue", "cancel"),
    )  # fmt: skip


def test_a_moment_is_stored_whatever_its_timezone(charge: Task[..., str]) -> None:
    in_tokyo = NOON.astimezone(timezone(timedelta(hours=9)))
    assert charge.using(run_at=in_tokyo).draft("a").run_at == NOON.timestamp()


def test_a_delay_is_left_to_the_store_s_clock_and_zero_is_none(charge: Task[..., str]) -> None:
    assert charge.using(delay=60).draft("a").delay == 60.0
    assert charge.using(delay=0).draft("a").delay is None
    assert charge.using(delay=0, run_at=NOON).draft("a").run_at == NOON.timestamp()


def test_jobs_drafts_and_ids_can_be_waited_for(charge: Task[..., str]) -> None:
    draft = charge.draft("a")
    job = job_of(charge.draft("b"))
    using = charge.using(depends_on=(job, draft, AN_ID, UUID(ANOTHER_ID), AN_ID.upper(), job))
    assert using.draft("c").depends_on == (job.id, draft.id, AN_ID, ANOTHER_ID)


def test_later_options_win_and_none_takes_one_back(charge: Task[..., str]) -> None:
    base = charge.using(target="a", priority=3, delay=60)
    assert base.using(target="b").draft("x").target == "b"
    assert base.using(target=None, delay=None, run_at=NOON).draft("x").target is None
    assert base.draft("x").target == "a"
    assert repr(base) == "<task charge>.using(target='a', priority=3, delay=60)"


def test_a_chosen_id_makes_enqueue_repeatable(charge: Task[..., str]) -> None:
    using = charge.using(id=UUID(AN_ID))
    assert (using.draft("a").id, using.draft("a").fresh) == (AN_ID, False)


def test_enqueue_gives_the_draft_to_the_client_and_its_job_back(app: App, charge: Task[..., str]) -> None:
    job = charge.enqueue("acct-7", cents=500)
    [(draft, where)] = app.recorder.calls
    assert (job.id, draft.payload_json, where) == (draft.id, '{"account":"acct-7","cents":500}', {})


def test_aenqueue_gives_it_to_the_async_client(app: App, charge: Task[..., str]) -> None:
    job = asyncio.run(charge.using(target="acct-7").aenqueue("acct-7"))
    [(draft, where)] = app.async_recorder.calls
    assert (job.id, draft.target, where) == (draft.id, "acct-7", {})
    assert app.recorder.calls == []


def test_connection_and_tenant_are_said_to_the_client_when_given(app: App, charge: Task[..., str]) -> None:
    connection = object()
    charge.using(connection=connection).enqueue("a")
    charge.using(tenant="acme").enqueue("a")
    charge.using(tenant="acme", connection=connection).using(tenant=None).enqueue("a")
    assert [where for _, where in app.recorder.calls] == [
        {"connection": connection},
        {"tenant": "acme"},
        {"connection": connection},
    ]
    asyncio.run(charge.using(connection=connection, tenant="acme").aenqueue("a"))
    assert app.async_recorder.calls[0][1] == {"connection": connection, "tenant": "acme"}


@pytest.mark.parametrize("route", [{"connection": object()}, {"tenant": "acme"}])
def test_a_draft_would_forget_where_to_go_and_is_refused(charge: Task[..., str], route: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"a draft has no {next(iter(route))}"):
        charge.using(**route).draft("a")
