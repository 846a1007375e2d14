"""Values that JSON changes are refused by the caller's call, with their path; all others are accepted."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretBytes, SecretStr

from relet import App
from relet._tasks.codec import TaskCodec
from relet.errors import InvalidArguments, InvalidPayload
from tests.tasks.helpers import AN_ID, NOON


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    YES = "yes"


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Order:
    id: UUID
    note: Any = None
    lines: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Plain:
    when: datetime


@dataclass
class Special(Order):
    extra: int = 0


class Row(msgspec.Struct, eq=False):
    value: Any
    at: datetime | None = None


class Login(BaseModel):
    user: str
    password: SecretStr


class Keys(BaseModel):
    token: SecretBytes | None = None
    hidden: int = Field(default=0, exclude=True)
    inner: Any = None


class Cached(BaseModel):
    name: str
    _cache: dict[str, int] = PrivateAttr(default_factory=dict)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


class Shape(TypedDict, total=False):
    since: date
    raw: Any


class Text(str):
    __slots__ = ()


class Number(float):
    pass


def taking(kind: Any) -> TaskCodec:
    def keep(value): ...  # type: ignore[no-untyped-def]

    keep.__annotations__ = {"value": kind, "return": kind}
    return TaskCodec(None, keep)


BERLIN = ZoneInfo("Europe/Berlin")
TWICE = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN)  # in the hour that comes twice


@pytest.mark.parametrize(
    ("kind", "value", "path", "problem"),
    [
        (Any, b"abc", "(value)", "bytes would arrive as str"),
        (object, b"abc", "(value)", "bytes would arrive as str"),
        (Any, {1, 2}, "(value)", "set would arrive as list"),
        (Any, frozenset({1}), "(value)", "frozenset would arrive as list"),
        (Any, Point(1, 2), "(value)", "Point would arrive as list"),
        (Any, NOON, "(value)", "datetime would arrive as str"),
        (Any, date(2030, 1, 1), "(value)", "date would arrive as str"),
        (Any, timedelta(seconds=1), "(value)", "timedelta would arrive as str"),
        (Any, UUID(AN_ID), "(value)", "UUID would arrive as str"),
        (Any, Decimal("1.5"), "(value)", "Decimal would arrive as str"),
        (Any, Colour.RED, "(value)", "Colour would arrive as str"),
        (Any, Order(UUID(AN_ID)), "(value)", "Order would arrive as dict"),
        (Any, Row(1), "(value)", "Row would arrive as dict"),
        (Any, Cached(name="a"), "(value)", "Cached would arrive as dict"),
        (Any, {"a": [1, {"b": b"c"}]}, "(value).a[1].b", "bytes would arrive as str"),
        (Any, {UUID(AN_ID): 1}, "(value) (key)", "of type UUID would arrive as another"),
        (list[object], [{1}], "(value)[0]", "set would arrive as list"),
        (str, date(2030, 1, 1), "(value)", "date would arrive as str"),
        (str, UUID(AN_ID), "(value)", "UUID would arrive as str"),
        (str, b"abc", "(value)", "bytes would arrive as str"),
        (str, Colour.RED, "(value)", "Colour would arrive as str"),
        (list[int], {1, 2}, "(value)", "set would arrive as list"),
        (Order, Special(UUID(AN_ID)), "(value)", "Special would arrive as Order"),
        (Order, Order(UUID(AN_ID), note=b"abc"), "(value).note", "bytes would arrive as str"),
        (Order, {"id": UUID(AN_ID), "note": {1}}, "(value).note", "set would arrive as list"),
        (Shape, {"since": date(2030, 1, 1), "raw": b"a"}, "(value).raw", "bytes would arrive as str"),
        (Row, Row(b"abc"), "(value).value", "bytes would arrive as str"),
        (Login, Login(user="a", password=SecretStr("hunter2")), "(value).password", "another value"),
        (list[Login], [Login(user="a", password=SecretStr("hunter2"))], "(value)[0].password", "another value"),
        (Keys, Keys(token=SecretBytes(b"hunter2")), "(value).token", "another value"),
        (Keys, Keys(hidden=7), "(value).hidden", "another value"),
        (Keys, Keys(inner=b"abc"), "(value).inner", "bytes would arrive as str"),
        (Open, Open.model_validate({"name": "a", "raw": b"abc"}), "(value).raw", "bytes would arrive as str"),
        (Decimal, Decimal("NaN"), "(value)", "another value"),
    ],
)
def test_values_that_json_changes_are_refused_with_their_path(kind: Any, value: Any, path: str, problem: str) -> None:
    task = taking(kind)
    with pytest.raises(InvalidPayload) as error:
        task.encode((value,), {})
    assert error.value.path == f"keep{path}"
    assert problem in error.value.problem
    assert "hunter2" not in str(error.value)
    with pytest.raises(InvalidPayload, match="the result of keep"):
        task.encode_result(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Any, {"a": [1, 2.5, None, True, "x", {"b": []}]}),
        (Any, Level.LOW),
        (Any, Word.YES),
        (Any, Text("a")),
        (Any, Number(1.5)),
        (Any, OrderedDict(a=1)),
        (Any, defaultdict(int, a=1)),
        (Any, -0.0),
        (float, 1),
        (Any, (1, (2, 3))),
        (dict[str, Any], {"a": (1,)}),
        (list[int], (1, 2)),
        (Sequence[int], (1, 2)),
        (list[Colour] | None, (Colour.RED,)),
        (dict[str, list[UUID]], {"a": (UUID(AN_ID),)}),
        (tuple[int, ...], (1, 2)),
        (Order, Order(UUID(AN_ID), note=[1], lines=[1])),
        (Order, Order(UUID(AN_ID), lines=(1, 2))),  # type: ignore[arg-type]
        (Order, {"id": UUID(AN_ID)}),
        (Order, {"id": AN_ID, "lines": [1]}),
        (Plain, Plain(TWICE)),
        (Row, Row({"a": 1}, NOON)),
        (Shape, {"since": date(2030, 1, 1)}),
        (Cached, Cached(name="a")),
        (Open, Open.model_validate({"name": "a", "more": [1]})),
        (datetime, "2030-01-01T00:00:00Z"),
        (bytes, "YWJj"),
        (bytes, bytearray(b"abc")),
        (set[int], frozenset({1})),
        (set[int], [1, 2]),
        (list[datetime], ["2030-01-01T00:00:00Z"]),
        (dict[UUID, datetime], {AN_ID: "2030-01-01T00:00:00Z"}),
        (frozenset[Colour], {Colour.RED}),
        (datetime, TWICE),
        (datetime, TWICE.replace(fold=1)),
        (datetime, datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))),
        (list[datetime], [TWICE]),
        (dict[str, datetime], {"a": TWICE}),
        (time, time(1, 2, 3)),
        (Decimal, Decimal("1.50")),
        (Decimal, Decimal("-0")),
        (Decimal, 1.5),
        (dict[UUID, int], {UUID(AN_ID): 1}),
    ],
)
def test_values_that_json_returns_equal_are_accepted(kind: Any, value: Any) -> None:
    task = taking(kind)
    task.decode(task.encode((value,), {}))
    task.encode_result(value)


def test_a_model_whose_private_state_is_not_stored_is_accepted() -> None:
    one = Cached(name="a")
    one._cache["b"] = 1
    taking(Cached).encode((one,), {})


def test_variadic_arguments_come_back_each_by_its_annotation() -> None:
    def keep(*args: int, **kwargs: Any) -> None: ...

    task = TaskCodec(None, keep)
    assert task.decode(task.encode((1, 2), {"a": [3]})) == ((1, 2), {"a": [3]})
    with pytest.raises(InvalidPayload, match=r"keep\(kwargs\)\.a: a value of type set would arrive as list"):
        task.encode((1,), {"a": {3}})


def test_a_value_with_a_strange_equality_is_refused_without_another_error() -> None:
    with pytest.raises((InvalidPayload, InvalidArguments)):
        taking(Decimal).encode((Decimal("sNaN"),), {})


@pytest.mark.long
@settings(deadline=None)
@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.timezones()))
def test_every_moment_comes_back_or_is_refused(moment: datetime) -> None:
    task = taking(datetime)
    try:
        text = task.encode((moment,), {})
    except InvalidPayload:
        assert (moment.utcoffset() or timedelta()).seconds % 60, "an offset in seconds cannot be told"
        return
    (back,), _ = task.decode(text)
    assert back.astimezone(UTC) == moment.astimezone(UTC)


scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
)  # fmt: skip
strange = (
    st.binary(max_size=5) | st.decimals(allow_nan=False, allow_infinity=False) | st.uuids() | st.datetimes()
    | st.dates() | st.timedeltas(timedelta(-9), timedelta(9))
    | st.sampled_from([Colour.RED, Level.LOW, Word.YES, Text("a")])
    | st.frozensets(st.integers(0, 9), max_size=3) | st.builds(Order, st.uuids(), st.integers(0, 9))
)  # fmt: skip
values = st.recursive(
    scalars | strange,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(values)
def test_whatever_is_accepted_without_an_annotation_comes_back_equal(value: Any) -> None:
    task = taking(Any)
    try:
        text = task.encode((value,), {})
    except (InvalidPayload, InvalidArguments):
        return
    (back,), _ = task.decode(text)
    assert back == as_lists(value)


def as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_lists(item) for key, item in value.items()}
    return [as_lists(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.mark.long
@settings(deadline=None)
@given(
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner), max_leaves=9
    )
)
def test_plain_json_is_always_accepted(value: Any) -> None:
    task = taking(Any)
    (back,), _ = task.decode(task.encode((value,), {}))
    assert back == value or (isinstance(value, float) and math.isclose(back, value))


# Results from outside, steps and signals.


def test_a_result_given_from_outside_is_held_to_the_annotation() -> None:
    app = App("sqlite:///:memory:")

    @app.task
    def typed() -> bytes:
        return b""

    @app.task
    def untyped():  # type: ignore[no-untyped-def]
        ...

    job = typed.enqueue()
    assert app.client.complete(job, b"abc").result_json == '"YWJj"'
    job = untyped.enqueue()
    with pytest.raises(InvalidPayload, match="bytes would arrive as str"):
        app.client.complete(job, b"abc")
    app.close()


def test_a_signal_that_no_annotation_brings_back_is_refused() -> None:
    app = App("sqlite:///:memory:")

    @app.task
    def work() -> None: ...

    job = work.enqueue()
    with pytest.raises(InvalidPayload, match=r"signal 'login'\.password: .* another value"):
        app.client.signal(job, "login", Login(user="a", password=SecretStr("hunter2")))
    with pytest.raises(InvalidPayload, match=r"signal 'data'\.a: .*bytes would arrive as str"):
        app.client.signal(job, "data", {"a": b"abc"})
    assert app.client.signal(job, "order", Order(UUID(AN_ID)))
    assert app.client.signal(job, "when", NOON)
    app.close()


def test_a_stored_payload_that_is_nested_too_deep_is_told_and_not_a_recursion_error() -> None:
    deep = '{"value":' + "[" * 100_000 + "]" * 100_000 + "}"
    with pytest.raises(InvalidArguments, match="nested too deep"):
        taking(Any).decode(deep)
