"""What a task is called with: wrong arguments and bad payloads are refused before anything is stored."""

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from relet._tasks.task import Task
from relet.errors import InvalidArguments, InvalidPayload

if TYPE_CHECKING:
    pass

from tests.tasks.helpers import App, Box, Opaque, StructBox, table

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
    text = task.draft(*args, **kwargs).payload_json
    assert json.loads(text) == stored
    again_args, again_kwargs = task.arguments(text)
    signature = inspect.signature(function)
    assert signature.bind(*again_args, **again_kwargs) == signature.bind(*args, **kwargs)


def test_a_name_can_be_positional_and_among_the_keywords(app: App) -> None:
    @app.task
    def mixed(name: str, /, **options: int) -> tuple[str, dict[str, int]]:
        return name, options

    args, kwargs = mixed.arguments(mixed.draft("Ada", name=5).payload_json)
    assert mixed(*args, **kwargs) == ("Ada", {"name": 5})


def test_any_name_of_a_parameter_will_do(app: App) -> None:
    @app.task
    def odd(__x: int, tag: int, name: int, fields: int, type: int, été: int) -> list[int]:
        return [__x, tag, name, fields, type, été]

    args, kwargs = odd.arguments(odd.draft(1, 2, 3, 4, 5, 6).payload_json)
    assert odd(*args, **kwargs) == [1, 2, 3, 4, 5, 6]


# Bad payloads


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


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
def test_values_that_both_stores_cannot_hold_are_refused_with_their_path(
    app: App, value: Any, path: str, problem: str
) -> None:
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


def test_a_payload_is_turned_into_the_call_that_it_stands_for(app: App) -> None:
    @app.task
    def f(a: int, /, b: int = 2, *rest: int, c: int, **more: int) -> None: ...

    args, kwargs = f.signature.call_of({"a": 1, "b": 3, "rest": [4, 5], "c": 6, "more": {"d": 7}})
    assert (args, kwargs) == ((1, 3, 4, 5), {"c": 6, "d": 7})
    for wrong, complaint in (
        ({"a": 1, "d": 7}, "'d' is no parameter of this task; it has a, b, rest, c, more"),
        ({"rest": 4}, r"f\(rest\): must be a list"),
        ({"more": []}, r"f\(more\): must be an object"),
    ):
        with pytest.raises(InvalidArguments, match=complaint):
            f.signature.call_of(wrong)


def test_a_task_knows_the_schemas_of_its_payload_and_result(app: App) -> None:
    @app.task
    def f(a: int, b: list[str] = []) -> dict[str, float]: ...  # type: ignore[empty-body]  # noqa: B006

    payload, result = f.signature.schemas()
    assert payload is not None
    assert payload["$defs"]["Arguments"]["properties"] == {
        "a": {"type": "integer"},
        "b": {"type": "array", "items": {"type": "string"}},
    }
    assert payload["$defs"]["Arguments"]["required"] == ["a"]
    assert result == {"type": "object", "additionalProperties": {"type": "number"}}
