"""Tasks: what a call becomes, what is refused before anything is stored, and what comes back at the worker."""

import asyncio
import functools
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NoReturn, Optional, TypedDict, Unpack
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field

from leasehold.attempt import Attempt, Continuation
from leasehold.core.backoff import Backoff
from leasehold.core.errors import (
    Aborted,
    InvalidArguments,
    InvalidInput,
    InvalidPayload,
    UnknownTask,
)
from leasehold.core.ids import parse_id
from leasehold.core.job import Claimed, Draft, Job, Policy, State
from leasehold.tasks import Task, Tasks

if TYPE_CHECKING:
    from decimal import Context as NeverImported

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
AN_ID = "0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1"
ANOTHER_ID = "0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de2"


class Recorder:
    """A client that stores nothing and remembers what it was given."""

    def __init__(self) -> None:
        self.calls: list[tuple[Draft[Any], dict[str, Any]]] = []

    def enqueue(self, draft: Draft[Any], /, **where: Any) -> Job[Any]:
        self.calls.append((draft, where))
        return job_of(draft)


class AsyncRecorder(Recorder):
    async def enqueue(self, draft: Draft[Any], /, **where: Any) -> Job[Any]:  # type: ignore[override]
        return super().enqueue(draft, **where)


class App(Tasks):
    """Tasks with two recording clients."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.recorder, self.async_recorder = Recorder(), AsyncRecorder()

    @property
    def client(self) -> Any:
        return self.recorder

    @property
    def aclient(self) -> Any:
        return self.async_recorder


def job_of(draft: Draft[Any]) -> Job[Any]:
    return Job(
        id=draft.id, task=draft.task, queue=draft.queue, state=State.QUEUED, priority=draft.priority,
        payload=draft.payload, attempt=0, max_attempts=4, losses=0, version=0, chain=draft.id, position=0,
        created_at=NOON, run_at=NOON,
    )  # fmt: skip


def claimed(version: int = 3) -> Claimed:
    return Claimed(
        id=AN_ID, token=ANOTHER_ID, version=version, task="charge", queue="default", payload="{}", priority=0,
        target=None, attempt=1, losses=0, policy=Policy(), chain=AN_ID, position=0, rank_and_seq=(0, 1), created_at=0.0,
        run_at=0.0, expires_at=30.0,
    )  # fmt: skip


def table(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Rows of a parametrized test, each named by its place and its last column."""
    return [pytest.param(*row, id=f"{number}-{row[-1]!s:.40}") for number, row in enumerate(rows)]


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def charge(app: App) -> Task[..., str]:
    @app.task(queue="billing", max_attempts=5, timeout=300)
    def charge(attempt: Attempt, account: str, cents: int = 100) -> str:
        return f"{account} pays {cents} at version {attempt.version}"

    return charge


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
        on_blocker_failure="run",
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
        charge.nonsense  # type: ignore[attr-defined]  # noqa: B018


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
        Tasks()  # type: ignore[abstract]


# Drafts


def test_a_draft_has_an_id_of_its_own_and_the_task_s_policy(charge: Task[..., str]) -> None:
    first, second = charge.draft("acct-7", 500), charge.draft("acct-7", 500)
    assert parse_id(first.id) != parse_id(second.id)
    assert first.fresh
    assert first == Draft(
        first.id, "charge", '{"account":"acct-7","cents":500}', queue="billing", policy=Policy(5, timeout=300.0)
    )


def test_options_end_up_in_the_draft(charge: Task[..., str]) -> None:
    draft = charge.using(
        queue="slow", priority=-5, run_at=NOON, target="acct-7", unique="inv-9", unique_for=3600, after=[AN_ID],
        id=ANOTHER_ID, max_attempts=1, backoff=Backoff(base=9), timeout=None, on_expired="fail", on_failure="continue",
        on_blocker_failure="cancel",
    ).draft("acct-7")  # fmt: skip
    assert draft == Draft(
        ANOTHER_ID, "charge", '{"account":"acct-7"}', queue="slow", priority=-5, run_at=NOON.timestamp(),
        target="acct-7", unique="inv-9", unique_for=3600.0, after=(AN_ID,), fresh=False,
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
    using = charge.using(after=(job, draft, AN_ID, UUID(ANOTHER_ID), AN_ID.upper(), job))
    assert using.draft("c").after == (job.id, draft.id, AN_ID, ANOTHER_ID)


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
    assert (job.id, draft.payload, where) == (draft.id, '{"account":"acct-7","cents":500}', {})


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


# Bad options


def bad_using() -> Iterator[tuple[dict[str, Any], str]]:
    for name in ("", "a" * 129, "a b", "a\n", 'a"b', "a'b", "a\0", None, 5):
        yield {"queue": name}, "queue must be 1 to 128 letters"
    for key in ("", "a" * 513, "a\n", "a\0", "\ud800", 5):
        yield {"target": key}, "target must be 1 to 512 printable characters"
        yield {"unique": key}, "unique must be 1 to 512 printable characters"
        yield {"tenant": key}, "tenant must be 1 to 512 printable characters"
    for number in (-101, 101, 1.0, True, "1", None):
        yield {"priority": number}, "priority must be a whole number from -100 to 100"
    for number in (0, 10_001, 4.0, None):
        yield {"max_attempts": number}, "max_attempts must be a whole number from 1 to 10000"
    for seconds in (-1, -0.001, float("nan"), float("inf"), "60", True, timedelta(seconds=1), 1e12):
        yield {"delay": seconds}, "delay must be seconds from 0"
        yield {"unique": "a", "unique_for": seconds}, "unique_for must be seconds from"
        yield {"timeout": seconds}, "timeout must be seconds from"
    yield {"timeout": 0}, "timeout must be seconds from"
    yield {"unique": "a", "unique_for": 0}, "unique_for must be seconds from"
    yield {"unique_for": 60}, "give unique as well"
    yield {"run_at": datetime(2030, 1, 1)}, "run_at must have a timezone"
    yield {"run_at": datetime.max.replace(tzinfo=UTC)}, "must lie between 1970 and 2100"
    yield {"run_at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-9)))}, "must lie between 1970 and 2100"
    yield {"run_at": date(2030, 1, 1)}, "run_at must be a datetime"
    yield {"run_at": 1893456000}, "run_at must be a datetime"
    yield {"run_at": NOON, "delay": 60}, "give one of them"
    for wrong in ("", "x", "12345678-1234-4234-8234-123456789abc", UUID(int=5), 5, AN_ID.replace("-", "")):
        yield {"id": wrong}, "a job id is a UUIDv7"
        yield {"after": [wrong]}, "a job id is a UUIDv7"
    yield {"id": "ffffffff-ffff-7b3a-9d1f-2f6f5a1c0de1"}, "not between 2020 and 2100"
    for no_list in (AN_ID, UUID(AN_ID), 5, iter([AN_ID])):
        yield {"after": no_list}, "after must be a list"
    yield {"id": AN_ID, "after": [AN_ID]}, "cannot wait for itself"
    yield {"backoff": 5}, "backoff must be a Backoff"
    for option in ("on_expired", "on_failure", "on_blocker_failure"):
        yield {option: "explode"}, f"{option} must be one of"
        yield {option: None}, f"{option} must be one of"
    for unknown in ("lease", "process", "name", "countdown", "eta"):
        yield {unknown: 1}, f"has no option {unknown}; there are after, backoff, connection, delay, id,"


@pytest.mark.parametrize(("options", "complaint"), table(bad_using()))
def test_bad_options_of_a_job_are_refused_before_anything_is_stored(
    app: App, charge: Task[..., str], options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=r"^charge\.using") as caught:
        charge.using(**options)
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 400
    assert app.recorder.calls == []


def bad_task_options() -> Iterator[tuple[dict[str, Any], str]]:
    for name in ("", "a" * 129, "a b", "a\n", 'a"b', 5):
        yield {"name": name}, "name must be 1 to 128 letters"
        yield {"queue": name}, "queue must be 1 to 128 letters"
    yield {"priority": 101}, "priority must be a whole number from -100 to 100"
    yield {"max_attempts": 0}, "max_attempts must be a whole number from 1 to 10000"
    for lease in (0, 0.05, 86_401, "30", True):
        yield {"lease": lease}, "lease must be seconds from 0.1 to 86400"
    yield {"timeout": 0}, "timeout must be seconds from"
    yield {"timeout": -1}, "timeout must be seconds from"
    yield {"backoff": {"base": 1}}, "backoff must be a Backoff"
    yield {"process": 1}, "process must be True or False"
    for option in ("on_expired", "on_doubt", "on_failure", "on_shutdown", "on_blocker_failure"):
        yield {option: "explode"}, f"{option} must be one of"
    for unknown in ("retries", "bind", "target"):
        yield {unknown: 1}, f"has no option {unknown}; there are backoff, lease, max_attempts,"


@pytest.mark.parametrize(("options", "complaint"), table(bad_task_options()))
def test_bad_options_of_a_task_are_refused_at_decoration(app: App, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=r"^@app\.task") as caught:
        app.task(**options)
    assert complaint in str(caught.value)
    assert not app.tasks


def test_a_lease_may_be_short_enough_for_tests(app: App) -> None:
    @app.task(lease=0.1)
    def quick() -> None: ...

    assert quick.policy.lease == 0.1


# What cannot be a task


class Holder:
    def method(self, name: str) -> None: ...

    async def on_class(cls, name: str) -> None: ...

    def of_no_object(name: str) -> str:  # type: ignore[misc]
        return name

    @staticmethod
    def static(name: str) -> str:
        return name


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "complaint"),
    table(
        [
            (Holder, "Holder cannot be a task: it is a class"),
            (Holder.method, "Holder.method cannot be a task: it is a method"),
            (Holder.on_class, "Holder.on_class cannot be a task: it is a method"),
            (Holder().method, "Holder.method cannot be a task: it is a method"),
            (generator, "generator cannot be a task: it is a generator"),
            (async_generator, "async_generator cannot be a task: it is a generator"),
            (lambda: None, "it is a lambda"),
            (functools.partial(print, 1), "it is of type partial"),
            (print, "print cannot be a task: it is of type builtin"),
            ("greet", "'greet' cannot be a task: it is of type str"),
            (5, "5 cannot be a task: it is of type int"),
        ]
    ),
)
def test_what_is_no_function_is_refused_at_decoration(app: App, function: Any, complaint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        app.task(function)
    assert complaint in str(caught.value)
    assert not app.tasks


def test_functions_in_a_class_that_need_no_object_can_be_tasks(app: App) -> None:
    assert app.task(Holder.of_no_object)("Ada") == "Ada"
    assert app.task(Holder.static)("Ada") == "Ada"


def test_a_parameter_called_self_of_a_plain_function_is_a_parameter(app: App) -> None:
    @app.task
    def about(self: str) -> str:
        return self

    assert about.draft("me").payload == '{"self":"me"}'


def test_a_function_whose_name_cannot_be_stored_needs_another(app: App) -> None:
    def grüße() -> None: ...

    with pytest.raises(InvalidInput, match="give name="):
        app.task(grüße)
    assert app.task(name="greetings")(grüße).name == "greetings"


def test_a_decorated_function_keeps_its_signature(app: App) -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return inner

    @app.task
    @logged
    def greet(attempt: Attempt, name: str) -> str:
        return name

    assert greet.takes_attempt
    with pytest.raises(InvalidArguments, match="missing a required argument: 'name'"):
        greet.draft()


# The attempt


def takes_optional(attempt: Attempt | None) -> None: ...
def takes_old_optional(attempt: Optional[Attempt]) -> None: ...  # noqa: UP045
def takes_annotated(attempt: Annotated[Attempt, "mine"]) -> None: ...
def takes_second(name: str, attempt: Attempt) -> None: ...
def takes_two(attempt: Attempt, other: Attempt) -> None: ...
def takes_keyword(*, attempt: Attempt) -> None: ...
def takes_many(*attempts: Attempt) -> None: ...
def takes_list(attempts: list[Attempt]) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        takes_optional,
        takes_old_optional,
        takes_annotated,
        takes_second,
        takes_two,
        takes_keyword,
        takes_many,
        takes_list,
    ],
)
def test_the_attempt_comes_first_and_is_always_there(app: App, function: Callable[..., None]) -> None:
    with pytest.raises(InvalidInput, match="the attempt is the first parameter, annotated `attempt: Attempt`"):
        app.task(function)


def test_the_attempt_is_known_under_any_name_and_as_text(app: App) -> None:
    @app.task
    def first(a: "Attempt", /, name: str) -> None: ...

    @app.task
    def second(name: str) -> None: ...

    assert (first.takes_attempt, second.takes_attempt) == (True, False)
    assert first.draft("Ada").payload == '{"name":"Ada"}'


def test_the_attempt_is_known_even_if_only_type_checkers_import_it(app: App) -> None:
    source = "def charge(attempt: 'Attempt', cents: int) -> None: ...\n"
    module: dict[str, Any] = {"__name__": "shop"}
    exec(source, module)  # noqa: S102
    assert app.task(module["charge"]).takes_attempt


def test_an_attempt_tells_its_version_and_whether_it_is_over() -> None:
    attempt = Attempt(claimed(version=7))
    assert attempt.version == 7
    attempt.check()
    attempt.aborted = "lease_lost"
    with pytest.raises(Aborted) as caught:
        attempt.check()
    assert caught.value.reason == "lease_lost"


def test_an_attempt_past_its_deadline_is_in_doubt() -> None:
    with pytest.raises(Aborted) as caught:
        Attempt(claimed(), deadline=0.0).check()
    assert caught.value.reason == "in_doubt"


def test_continue_with_carries_the_draft_out_of_the_handler(app: App, charge: Task[..., str]) -> None:
    @app.task
    def prepare(attempt: Attempt, account: str) -> str:
        return attempt.continue_with(charge.draft(account))

    returned: object = prepare(Attempt(claimed()), "acct-7")
    assert isinstance(returned, Continuation)
    assert (returned.draft.task, returned.draft.payload) == ("charge", '{"account":"acct-7"}')


# Wrong arguments


def some(a: int, b: str = "x") -> None: ...
def positional(a: int, /, b: int) -> None: ...
def keyword(*, a: int, b: int = 2) -> None: ...
def variadic(a: int, *rest: int, **named: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "complaint"),
    table(
        [
            (some, (), {}, "some() missing a required argument: 'a'"),
            (some, (1, "b", 3), {}, "some() got too many positional arguments"),
            (some, (1,), {"a": 2}, "some() got multiple values for argument 'a'"),
            (some, (1,), {"c": 2}, "some() got an unexpected keyword argument 'c'"),
            (some, (), {"b": "x"}, "some() missing a required argument: 'a'"),
            (some, ("1",), {}, "some(a): Expected `int`, got `str`"),
            (some, (True,), {}, "some(a): Expected `int`, got `bool`"),
            (some, (1.5,), {}, "some(a): Expected `int`, got `float`"),
            (some, (None,), {}, "some(a): Expected `int`, got `null`"),
            (some, (1,), {"b": 5}, "some(b): Expected `str`, got `int`"),
            (positional, (), {"a": 1, "b": 2}, "positional() "),
            (keyword, (1,), {}, "keyword() got too many positional arguments"),
            (keyword, (), {}, "keyword() missing a required "),
            (variadic, (1, 2, "3"), {}, "variadic(rest)[1]: Expected `int`, got `str`"),
            (variadic, (1,), {"x": 5}, "variadic(named)[...]: Expected `str`, got `int`"),
        ]
    ),
)
def test_wrong_arguments_are_refused_before_anything_is_stored(
    app: App, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], complaint: str
) -> None:
    task: Task[..., Any] = app.task(function)
    with pytest.raises(InvalidArguments) as caught:
        task.enqueue(*args, **kwargs)
    assert str(caught.value).startswith(complaint)
    assert isinstance(caught.value, TypeError)
    with pytest.raises(InvalidArguments):
        asyncio.run(task.aenqueue(*args, **kwargs))
    assert app.recorder.calls == app.async_recorder.calls == []


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "stored"),
    table(
        [
            (some, (1,), {}, {"a": 1}),
            (some, (1, "x"), {}, {"a": 1, "b": "x"}),
            (some, (), {"b": "y", "a": 1}, {"a": 1, "b": "y"}),
            (positional, (1,), {"b": 2}, {"a": 1, "b": 2}),
            (keyword, (), {"a": 1}, {"a": 1}),
            (variadic, (1,), {}, {"a": 1}),
            (variadic, (1, 2, 3), {"x": "y"}, {"a": 1, "rest": [2, 3], "named": {"x": "y"}}),
        ]
    ),
)
def test_arguments_are_stored_by_name_without_defaults_and_come_back(
    app: App, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], stored: dict[str, Any]
) -> None:
    task: Task[..., Any] = app.task(function)
    text = task.draft(*args, **kwargs).payload
    assert json.loads(text) == stored
    again_args, again_kwargs = task.arguments(text)
    signature = inspect.signature(function)
    assert signature.bind(*again_args, **again_kwargs) == signature.bind(*args, **kwargs)


def test_a_name_can_be_positional_and_among_the_keywords(app: App) -> None:
    @app.task
    def mixed(name: str, /, **options: int) -> tuple[str, dict[str, int]]:
        return name, options

    args, kwargs = mixed.arguments(mixed.draft("Ada", name=5).payload)
    assert mixed(*args, **kwargs) == ("Ada", {"name": 5})


def test_any_name_of_a_parameter_will_do(app: App) -> None:
    @app.task
    def odd(__x: int, tag: int, name: int, fields: int, type: int, été: int) -> list[int]:
        return [__x, tag, name, fields, type, été]

    args, kwargs = odd.arguments(odd.draft(1, 2, 3, 4, 5, 6).payload)
    assert odd(*args, **kwargs) == [1, 2, 3, 4, 5, 6]


# Bad payloads


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


class Opaque:
    pass


@dataclass
class Box:
    inside: Any
    beside: list[Any] = field(default_factory=list)


class StructBox(msgspec.Struct):
    inside: Any


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    table(
        [
            ("a\0b", "keep(value)", "NUL"),
            ({"a": ["x", "\0"]}, "keep(value).a[1]", "NUL"),
            ({"\0": 1}, "keep(value) (key)", "NUL"),
            ("a\ud800", "keep(value)", "lone surrogate at character 1"),
            ({"\udfff": 1}, "keep(value) (key)", "lone surrogate"),
            (float("nan"), "keep(value)", "nan is not JSON"),
            ([1.0, float("inf")], "keep(value)[1]", "inf is not JSON"),
            ({"a": {1: 2}}, "keep(value).a", "the key 1 is not a string"),
            ({None: 2}, "keep(value)", "the key None is not a string"),
            ({(1, 2): 2}, "keep(value)", "the key (1, 2) is not a string"),
            (2**64, "keep(value)", "more than 64 bits"),
            (Opaque(), "keep(value)", "values of type Opaque cannot be stored"),
            ({"a": [1, {"b": Opaque()}]}, "keep(value).a[1].b", "values of type Opaque cannot be stored"),
            ((1, {2: {3: Opaque}}), "keep(value)[1].2.3", "values of type type cannot be stored"),
            (Box(Box(1, [0, Opaque()])), "keep(value).inside.beside[1]", "values of type Opaque cannot be stored"),
            ([StructBox([complex(1)])], "keep(value)[0].inside[0]", "values of type complex cannot be stored"),
            ({Opaque(): 1}, "keep(value)", "cannot be stored"),
            (Box, "keep(value)", "values of type type cannot be stored"),
            (nested(64), "keep(value)" + "[0]" * 63, "nested deeper than 64"),
            (nested(100_000), "keep()", "nested deeper than 64"),
            (LOOP, "keep()", "contains itself"),
            ("x" * (256 * 1024), "keep()", "bytes of JSON, the limit is 262,144"),
        ]
    ),
)
def test_what_both_stores_cannot_hold_is_refused_with_its_path(app: App, value: Any, path: str, problem: str) -> None:
    @app.task
    def keep(value: Any) -> Any: ...

    with pytest.raises(InvalidPayload) as caught:
        keep.enqueue(value)
    assert caught.value.path == path
    assert problem in caught.value.problem
    assert app.recorder.calls == []
    with pytest.raises(InvalidPayload, match=r"^the result of keep"):
        keep.encode_result(value if value != "x" * (256 * 1024) else value + "x")


def test_a_deep_value_with_something_unknown_at_the_bottom_is_refused_too(app: App) -> None:
    @app.task
    def keep(value: Any) -> None: ...

    value: Any = Opaque()
    for _ in range(500):
        value = [value]
    with pytest.raises(InvalidPayload, match="nested deeper than 64"):
        keep.draft(value)


def test_the_limit_of_a_payload_is_the_app_s() -> None:
    app = App(payload_limit=100)

    @app.task
    def keep(value: str) -> str: ...  # type: ignore[empty-body]

    assert keep.draft("x" * 80)
    with pytest.raises(InvalidPayload, match="the limit is 100"):
        keep.draft("x" * 100)
    with pytest.raises(InvalidPayload, match="the limit is 100"):
        keep.encode_result("x" * 100)


# Conversion


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: int = 0


class Address(TypedDict, total=False):
    street: str
    since: date


@dataclass
class Order:
    id: UUID
    total: Decimal
    placed: datetime
    colours: set[Colour] = field(default_factory=set)
    next: Optional["Order"] = None


class Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    when: datetime
    name: str = Field(alias="fullName")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def upper(self) -> str:
        return self.name.upper()


class Models(RootModel[list[int]]):
    pass


class Keywords(TypedDict, total=False):
    width: int
    order: Order


ORDER = Order(UUID(AN_ID), Decimal("12.50"), NOON, {Colour.RED}, Order(UUID(ANOTHER_ID), Decimal(0), NOON))
MODEL = Model(when=NOON, fullName="Ada")


@pytest.mark.parametrize(
    ("kind", "value"),
    table(
        [
            (int, 5),
            (float, 5.5),
            (str, "Ada"),
            (bool, True),
            (type(None), None),
            (bytes, b"\xff\0"),
            (datetime, NOON),
            (datetime, datetime(2030, 1, 1)),
            (date, date(2030, 1, 1)),
            (timedelta, timedelta(seconds=90)),
            (UUID, UUID(AN_ID)),
            (Decimal, Decimal("0.10")),
            (Colour, Colour.BLUE),
            (Literal["a", 1, None], "a"),
            (datetime | None, None),
            (int | None, 5),
            (int | str | list[int], [1]),
            (Order, ORDER),
            (Order | None, ORDER),
            (Point, Point(1, 2)),
            (Address, {"street": "Main", "since": date(2030, 1, 1)}),
            (list[Order], [ORDER]),
            (dict[str, UUID], {"a": UUID(AN_ID)}),
            (dict[UUID, int], {UUID(AN_ID): 1}),
            (tuple[int, str], (1, "a")),
            (tuple[Colour, ...], (Colour.RED, Colour.RED)),
            (set[int], {1, 2}),
            (frozenset[Colour], frozenset({Colour.RED})),
            (Sequence[int], [1]),
            (Mapping[str, int], {"a": 1}),
            (StructBox, StructBox(5)),
            (Annotated[int, msgspec.Meta(ge=0)], 5),
            (Any, {"a": [1, None]}),
            (object, {"a": [1, None]}),
            (list[object], [1, "a"]),
            (Model, MODEL),
            (Model | None, MODEL),
            (list[Model], [MODEL]),
            (dict[str, tuple[Model, int]], {"a": (MODEL, 1)}),
            (Models, Models([1, 2])),
        ]
    ),
)
def test_arguments_and_results_come_back_as_their_annotations_have_them(app: App, kind: Any, value: Any) -> None:
    def keep(value, other=1): ...  # type: ignore[no-untyped-def]

    keep.__annotations__ = {"value": kind, "return": kind}
    task: Task[..., Any] = app.task(keep)
    args, kwargs = task.arguments(task.draft(value).payload)
    assert (args, kwargs) == ((value,), {})
    assert type(args[0]) is type(value)
    assert task.decode_result(task.encode_result(value)) == value


def test_models_within_dataclasses_and_typed_keywords_are_converted(app: App) -> None:
    @app.task
    def build(box: Crate, **options: Unpack[Keywords]) -> Crate:
        return box

    text = build.draft(Crate([MODEL]), width=5, order=ORDER).payload
    assert build.arguments(text) == ((Crate([MODEL]),), {"width": 5, "order": ORDER})
    with pytest.raises(InvalidArguments, match=r"build\(options\).width: Expected `int`, got `str`"):
        build.draft(Crate([]), width="5")  # type: ignore[arg-type]


@dataclass
class Crate:
    models: list[Model]


def test_the_values_of_a_model_are_checked_at_enqueue(app: App) -> None:
    @app.task
    def keep(models: list[Model]) -> None: ...

    assert keep.draft([{"when": "2030-01-01T12:00:00Z", "fullName": "Ada"}])  # type: ignore[list-item]
    with pytest.raises(InvalidArguments, match=r"(?s)^keep\(models\)\[0\]: .*fullName"):
        keep.draft([{"when": "2030-01-01T12:00:00Z"}])  # type: ignore[list-item]


def test_constraints_are_checked_at_enqueue(app: App) -> None:
    @app.task
    def pay(cents: Annotated[int, msgspec.Meta(gt=0)], colour: Colour) -> None: ...

    with pytest.raises(InvalidArguments, match=r"pay\(cents\): Expected `int` >= 1"):
        pay.draft(0, Colour.RED)
    with pytest.raises(InvalidArguments, match=r"pay\(colour\): Invalid enum value 'green'"):
        pay.draft(1, "green")  # type: ignore[arg-type]


def test_subclasses_of_plain_values_are_stored_as_what_they_extend(app: App) -> None:
    class Text(str):
        def __str__(self) -> str:
            return "not this"

    class Number(int): ...

    class Float(float): ...

    class Frozen(datetime): ...

    @app.task
    def keep(text: str, number: int, real: float, when: datetime) -> None: ...

    args, _ = keep.arguments(keep.draft(Text("a"), Number(5), Float(1.5), Frozen(2030, 1, 1, 12)).payload)
    assert args == ("a", 5, 1.5, datetime(2030, 1, 1, 12))


def test_unannotated_functions_take_what_json_holds(app: App) -> None:
    @app.task
    def loose(a, b=2): ...  # type: ignore[no-untyped-def]

    assert loose.arguments(loose.draft([1], b={"x": None}).payload) == (([1], {"x": None}), {})
    assert loose.decode_result('{"a":1}') == {"a": 1}


def test_a_function_that_never_returns_can_be_a_task(app: App) -> None:
    @app.task
    def explode() -> NoReturn:
        raise RuntimeError

    assert explode.draft().payload == "{}"


# Old payloads


@pytest.mark.parametrize(
    ("text", "complaint"),
    table(
        [
            ("{}", "charge(): the stored payload does not fit the function: account is not in it"),
            (
                '{"account":"a","euro":5}',
                "charge(): the stored payload does not fit the function: euro is no parameter",
            ),
            (
                '{"konto":"a","euro":5}',
                "charge(): the stored payload does not fit the function: "
                "account is not in it, euro is no parameter, konto is no parameter",
            ),
            ('{"account":5}', "charge(account): Expected `str`, got `int`"),
            ("[1]", "charge(): the stored payload is no JSON object"),
            ("nonsense", "charge(): the stored payload is no JSON: "),
            ('{"account":', "charge(): the stored payload is no JSON: "),
        ]
    ),
)
def test_a_payload_that_no_longer_fits_says_what_differs(charge: Task[..., str], text: str, complaint: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        charge.arguments(text)
    assert str(caught.value).startswith(complaint)


def test_a_new_parameter_with_a_default_fits_old_payloads(charge: Task[..., str]) -> None:
    assert charge.arguments('{"account":"acct-7"}') == (("acct-7",), {})


def test_a_result_that_does_not_fit_the_annotation_says_so(charge: Task[..., str]) -> None:
    assert charge.decode_result(charge.encode_result("done")) == "done"
    with pytest.raises(InvalidPayload, match="the result of charge: does not fit its annotation: Expected `str`"):
        charge.decode_result("5")


# Annotations


@pytest.mark.parametrize(
    ("kind", "shown"),
    table(
        [
            (Opaque, "Opaque"),
            (list[Opaque], "Opaque"),
            (Box | Opaque, "Opaque"),
            (Callable[[], None], "Callable"),
            (Iterator[int], "Iterator"),
            (type[int], "type"),
            (complex, "complex"),
            (str | datetime, "str | datetime.datetime"),
            (Order | Box, "Order"),
        ]
    ),
)
def test_annotations_that_cannot_be_converted_are_refused_at_decoration(app: App, kind: Any, shown: str) -> None:
    def keep(first: int, value: Any) -> None: ...

    keep.__annotations__["value"] = kind
    with pytest.raises(InvalidInput, match=r"^keep\(value\): .* cannot be converted from JSON") as caught:
        app.task(keep)
    assert shown in str(caught.value)

    def give() -> Any: ...

    give.__annotations__["return"] = kind
    with pytest.raises(InvalidInput, match=r"^the result of give: .* cannot be converted from JSON"):
        app.task(give)
    assert not app.tasks


@dataclass
class Nested:
    boxes: "list[Inner]"


@dataclass
class Inner:
    nested: Nested | None
    opaque: Opaque


def test_what_cannot_be_converted_is_found_within_dataclasses(app: App) -> None:
    with pytest.raises(InvalidInput, match=r"^keep\(value\): \S*Opaque cannot be converted"):

        @app.task
        def keep(value: Nested) -> None: ...


def test_an_annotation_that_is_nonsense_is_refused_at_decoration(app: App) -> None:
    def keep(value: "not a type") -> None: ...  # type: ignore[valid-type]  # noqa: F722

    with pytest.raises(InvalidInput, match=r"^keep\(value\): the annotation not a type cannot be understood"):
        app.task(keep)


def test_an_annotation_may_name_what_is_defined_later(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(value: "list[Later]", count: int = 1) -> "Later": ...  # type: ignore[name-defined]  # noqa: F821

    task: Task[..., Any] = app.task(keep)
    for use in (lambda: task.draft([]), lambda: task.arguments("{}"), lambda: task.decode_result("5")):
        with pytest.raises(InvalidInput, match=r"^keep\(value\): the annotation list\[Later\] cannot be resolved"):
            use()
    monkeypatch.setitem(globals(), "Later", Colour)
    assert task.arguments(task.draft([Colour.RED]).payload) == (([Colour.RED],), {})
    monkeypatch.delitem(globals(), "Later")
    assert task.decode_result('"red"') is Colour.RED  # resolved once


def test_an_annotation_resolved_later_is_refused_then_if_it_cannot_be_converted(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(value: "Later") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    task: Task[..., Any] = app.task(keep)
    monkeypatch.setitem(globals(), "Later", Opaque)
    with pytest.raises(InvalidInput, match=r"^keep\(value\): \S*Opaque cannot be converted"):
        task.draft(1)
    monkeypatch.setitem(globals(), "Later", Attempt)
    with pytest.raises(InvalidInput, match="the attempt is the first parameter"):
        task.draft(1)


@dataclass
class Lazy:
    later: "list[LaterStill]"  # type: ignore[name-defined]  # noqa: F821


def test_a_dataclass_may_name_what_is_defined_later(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.task
    def keep(value: Lazy) -> None: ...

    with pytest.raises(InvalidInput, match=r"^keep\(value\): an annotation within \S*Lazy cannot be resolved"):
        keep.draft(Lazy([]))
    monkeypatch.setitem(globals(), "LaterStill", Colour)
    assert keep.arguments(keep.draft(Lazy([Colour.RED])).payload) == ((Lazy([Colour.RED]),), {})


def test_an_annotation_that_only_type_checkers_know_is_refused_at_the_first_use(app: App) -> None:
    @app.task
    def keep(value: "NeverImported") -> None: ...

    with pytest.raises(InvalidInput, match="name 'NeverImported' is not defined"):
        keep.enqueue(5)  # type: ignore[arg-type]
    assert app.recorder.calls == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is new in Python 3.12")
def test_type_parameters_and_aliases_of_python_3_12_are_understood(app: App) -> None:
    source = "type Names = list[str]\ndef keep[T](value: 'T', names: Names, more: 'Names') -> 'T': ...\n"
    module: dict[str, Any] = {"__name__": "shop"}
    exec(source, module)  # noqa: S102
    task: Task[..., Any] = app.task(module["keep"])
    assert task.draft({"any": 1}, ["a"], ["b"]).payload == '{"value":{"any":1},"names":["a"],"more":["b"]}'
    with pytest.raises(InvalidArguments, match=r"^keep\(more\)\[0\]"):
        task.draft(1, [], [1])


def test_pydantic_is_not_imported_for_those_who_do_not_use_it() -> None:
    source = """
import sys
from leasehold.tasks import Tasks
class App(Tasks):
    client = aclient = None
@App().task
def keep(value: int): ...
keep.draft(5)
try:
    keep.draft(keep)
except ValueError:
    pass
assert "pydantic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", source], check=True, env={"PYTHONPATH": ":".join(sys.path)})
