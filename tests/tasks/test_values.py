"""From values to JSON and back, by annotation: conversion, old payloads, what cannot be converted."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NoReturn, Optional, TypedDict, Unpack
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field

from relet._attempts.attempt import Attempt
from relet._tasks.task import Task
from relet.errors import InvalidArguments, InvalidInput, InvalidPayload

if TYPE_CHECKING:
    from decimal import Context as NeverImported

from tests.tasks.helpers import AN_ID, ANOTHER_ID, NOON, App, Box, Opaque, StructBox, table

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
    args, kwargs = task.arguments(task.draft(value).payload_json)
    assert (args, kwargs) == ((value,), {})
    assert type(args[0]) is type(value)
    assert task.decode_result(task.encode_result(value)) == value


def test_models_within_dataclasses_and_typed_keywords_are_converted(app: App) -> None:
    @app.task
    def build(box: Crate, **options: Unpack[Keywords]) -> Crate:
        return box

    text = build.draft(Crate([MODEL]), width=5, order=ORDER).payload_json
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


def test_subclasses_of_plain_values_are_stored_as_their_base_class(app: App) -> None:
    class Text(str):
        def __str__(self) -> str:
            return "not this"

    class Number(int): ...

    class Float(float): ...

    class Frozen(datetime): ...

    @app.task
    def keep(text: str, number: int, real: float, when: datetime) -> None: ...

    args, _ = keep.arguments(keep.draft(Text("a"), Number(5), Float(1.5), Frozen(2030, 1, 1, 12)).payload_json)
    assert args == ("a", 5, 1.5, datetime(2030, 1, 1, 12))


def test_unannotated_functions_take_any_json_value(app: App) -> None:
    @app.task
    def loose(a, b=2): ...  # type: ignore[no-untyped-def]

    assert loose.arguments(loose.draft([1], b={"x": None}).payload_json) == (([1], {"x": None}), {})
    assert loose.decode_result('{"a":1}') == {"a": 1}


def test_a_function_that_never_returns_can_be_a_task(app: App) -> None:
    @app.task
    def explode() -> NoReturn:
        raise RuntimeError

    assert explode.draft().payload_json == "{}"


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
def test_the_error_of_a_payload_that_no_longer_fits_names_the_difference(
    charge: Task[..., str], text: str, complaint: str
) -> None:
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


def test_types_that_cannot_be_converted_are_found_within_dataclasses(app: App) -> None:
    with pytest.raises(InvalidInput, match=r"^keep\(value\): \S*Opaque cannot be converted"):

        @app.task
        def keep(value: Nested) -> None: ...


def test_an_annotation_that_is_nonsense_is_refused_at_decoration(app: App) -> None:
    def keep(value: "not a type") -> None: ...  # type: ignore[valid-type]  # noqa: F722

    with pytest.raises(InvalidInput, match=r"^keep\(value\): the annotation not a type cannot be evaluated"):
        app.task(keep)


def test_an_annotation_may_name_a_class_that_is_defined_later(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(value: "list[Later]", count: int = 1) -> "Later": ...  # type: ignore[name-defined]  # noqa: F821

    task: Task[..., Any] = app.task(keep)
    for use in (lambda: task.draft([]), lambda: task.arguments("{}"), lambda: task.decode_result("5")):
        with pytest.raises(InvalidInput, match=r"^keep\(value\): the annotation list\[Later\] cannot be resolved"):
            use()
    monkeypatch.setitem(globals(), "Later", Colour)
    assert task.arguments(task.draft([Colour.RED]).payload_json) == (([Colour.RED],), {})
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


def test_a_dataclass_may_name_a_class_that_is_defined_later(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.task
    def keep(value: Lazy) -> None: ...

    with pytest.raises(InvalidInput, match=r"^keep\(value\): an annotation within \S*Lazy cannot be resolved"):
        keep.draft(Lazy([]))
    monkeypatch.setitem(globals(), "LaterStill", Colour)
    assert keep.arguments(keep.draft(Lazy([Colour.RED])).payload_json) == ((Lazy([Colour.RED]),), {})


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
    exec(source, module)
    task: Task[..., Any] = app.task(module["keep"])
    assert task.draft({"any": 1}, ["a"], ["b"]).payload_json == '{"value":{"any":1},"names":["a"],"more":["b"]}'
    with pytest.raises(InvalidArguments, match=r"^keep\(more\)\[0\]"):
        task.draft(1, [], [1])


def test_pydantic_is_not_imported_for_those_who_do_not_use_it() -> None:
    source = """
import sys
from relet._tasks.task import TaskRegistry
class App(TaskRegistry):
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
