"""Whether a value comes back from JSON as what it was.

What has an annotation is converted back by it; what has none comes back as JSON has it: bytes as text, a set as a
list. Some types hide what they hold, whatever the annotation. What does not come back equal is refused where it is
given, with its path. Values that are JSON as they stand are not looked at: however an annotation reads them, that is
what was meant.

Equal means `==`, with these exceptions: records (dataclasses, Structs, pydantic models) are compared field by field and
must be of the same class, for not every class defines equality; moments are compared as moments, since a datetime in
the hour that a clock is put back is by definition not equal to any in another time zone; and a tuple is what JSON has
as a list: it comes back as the one or the other, as the annotation says; one with named fields has to keep them.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from .._core import payload

_MISSING = object()


class Difference(NamedTuple):
    """Where a value does not come back as it was, and why not."""

    path: str
    problem: str


def difference(given: Any, back: Any, path: str = "") -> Difference | None:
    """The first difference between what was given and what has come back; None: it came back equal."""
    return next(_differences(given, back, path), None)


def _differences(given: Any, back: Any, path: str) -> Iterator[Difference]:
    if _equal(given, back) if type(given) is type(back) else payload.is_plain(given):
        return  # as what else an annotation reads plain JSON, that is what was meant
    names = _fields(given)
    if names is not None:
        if type(back) is not type(given):
            yield _differ(given, back, path)
            return
        for name in names:
            yield from _differences(getattr(given, name, _MISSING), getattr(back, name, _MISSING), f"{path}.{name}")
    elif isinstance(given, datetime) and isinstance(back, datetime):
        if not _same_moment(given, back):
            yield _differ(given, back, path)
    elif isinstance(given, list | tuple) and isinstance(back, list | tuple) and not hasattr(given, "_fields"):
        if len(given) != len(back):
            yield _differ(given, back, path)
            return
        for index, (item, came) in enumerate(zip(given, back, strict=True)):
            yield from _differences(item, came, f"{path}[{index}]")
    elif isinstance(given, dict):
        yield from _dict_differences(given, back, path)
    elif not _equal(given, back):
        yield _differ(given, back, path)


def _dict_differences(given: dict[Any, Any], back: Any, path: str) -> Iterator[Difference]:
    """A dictionary may stand for a record, and comes back as that."""
    if isinstance(back, dict):
        for key, item in given.items():
            if key in back:
                yield from _differences(item, back[key], f"{path}.{key}")
            elif not payload.is_plain(given):  # else an annotation reads the keys, too
                yield Difference(f"{path} (key)", f"the key {key!r:.80} of type {_type(key)} would arrive as another")
    elif _fields(back) is None:
        yield _differ(given, back, path)
    else:
        for key, item in given.items():
            if not payload.is_plain(item):
                yield from _differences(item, getattr(back, str(key), _MISSING), f"{path}.{key}")


def _differ(given: Any, back: Any, path: str) -> Difference:
    there, here = _type(given), _type(back)
    if back is _MISSING:
        return Difference(path, f"a value of type {there} would not arrive")
    arrives = f"would arrive as {here}" if there != here else "would arrive with another value"
    return Difference(path, f"a value of type {there} {arrives}")


def _type(value: Any) -> str:
    return type(value).__qualname__


def _equal(given: Any, back: Any) -> bool:
    try:
        return bool(given == back)
    except Exception:
        return False  # arrays, signalling numbers, and whatever else does not like to be compared


def _same_moment(given: datetime, back: datetime) -> bool:
    if given.tzinfo is None or back.tzinfo is None:
        return given.tzinfo is back.tzinfo and given == back
    try:
        return _in_utc(given) == _in_utc(back)
    except OverflowError:  # at the very ends of the calendar
        return _equal(given, back)


def _in_utc(moment: datetime) -> datetime:
    """Without the time zone, whose rules would decide about equality."""
    return moment.replace(tzinfo=None, fold=0) - (moment.utcoffset() or timedelta())


def _fields(value: Any) -> list[str] | None:
    """The names of a record's fields; None: it is no record."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    if isinstance(value, msgspec.Struct):
        return list(kind.__struct_fields__)
    if hasattr(kind, "__attrs_attrs__"):
        return [field.name for field in kind.__attrs_attrs__]
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return [*kind.model_fields, *(value.__pydantic_extra__ or ())]
    return None
