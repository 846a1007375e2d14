"""Functions that cannot be tasks, and wrong options, are refused where they are written."""

import functools
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated, Any, Optional
from uuid import UUID

import pytest

from relet._attempts.attempt import Attempt, Continuation
from relet._tasks.task import Task
from relet.errors import Aborted, InvalidArguments, InvalidInput

if TYPE_CHECKING:
    pass

from tests.tasks.helpers import AN_ID, NOON, App, claimed, table

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
    for seconds in (-1, -0.001, float("nan"), float("inf"), "60", True, timedelta(seconds=-1), 1e12):
        yield {"delay": seconds}, "delay must be seconds from 0"
        yield {"unique": "a", "unique_for": seconds}, "unique_for must be seconds from"
        yield {"timeout": seconds}, "timeout must be seconds from"
    yield {"timeout": 0}, "timeout must be seconds from"
    yield {"unique": "a", "unique_for": 0}, "unique_for must be seconds from"
    yield {"unique_for": 60}, "pass unique as well"
    yield {"run_at": datetime(2030, 1, 1)}, "run_at must have a timezone"
    yield {"run_at": datetime.max.replace(tzinfo=UTC)}, "must lie between 1970 and 2100"
    yield {"run_at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-9)))}, "must lie between 1970 and 2100"
    yield {"run_at": date(2030, 1, 1)}, "run_at must be a datetime"
    yield {"run_at": 1893456000}, "run_at must be a datetime"
    yield {"run_at": NOON, "delay": 60}, "pass one of them"
    for wrong in ("", "x", "12345678-1234-4234-8234-123456789abc", UUID(int=5), 5, AN_ID.replace("-", "")):
        yield {"id": wrong}, "a job id is a UUIDv7"
        yield {"depends_on": [wrong]}, "a job id is a UUIDv7"
    yield {"id": "ffffffff-ffff-7b3a-9d1f-2f6f5a1c0de1"}, "not between 2020 and 2100"
    for no_list in (AN_ID, UUID(AN_ID), 5, iter([AN_ID])):
        yield {"depends_on": no_list}, "depends_on must be a list"
    yield {"id": AN_ID, "depends_on": [AN_ID]}, "cannot wait for itself"
    yield {"backoff": 5}, "backoff must be a Backoff"
    for option in ("on_expired", "on_failure", "on_dependency_failure"):
        yield {option: "explode"}, f"{option} must be one of"
        yield {option: None}, f"{option} must be one of"
    for unknown in ("lease", "process", "name"):
        yield {unknown: 1}, f"has no option {unknown}; there are backoff, connection, delay, depends_on,"


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
    for option in ("on_expired", "on_doubt", "on_failure", "on_shutdown", "on_dependency_failure"):
        yield {option: "explode"}, f"{option} must be one of"
    for unknown in ("bind", "target"):
        yield {unknown: 1}, f"has no option {unknown}; there are aliases, backoff, codec, fail_on, follow_up, lease,"


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
def test_an_object_that_is_no_function_is_refused_at_decoration(app: App, function: Any, complaint: str) -> None:
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

    assert about.draft("me").payload_json == '{"self":"me"}'


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
    assert first.draft("Ada").payload_json == '{"name":"Ada"}'


def test_the_attempt_is_known_even_if_only_type_checkers_import_it(app: App) -> None:
    source = "def charge(attempt: 'Attempt', cents: int) -> None: ...\n"
    module: dict[str, Any] = {"__name__": "shop"}
    exec(source, module)
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
    assert (returned.draft.task, returned.draft.payload_json) == ("charge", '{"account":"acct-7"}')
