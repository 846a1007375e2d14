"""Parses and validates requests field by field, so that one response can report all errors."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Raw, Struct, UnsetType

from ..problems import Fault, Refusal, invalid

S = TypeVar("S", bound=Struct)

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2099, 12, 31, tzinfo=UTC)

_COMPLAINT = re.compile(r"(?s)(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<rest>.*)`)?")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_JSON_TYPE = re.compile(r"(?i)application/(?:[\w.+-]+\+)?json\s*(?:;.*)?")
_WHOLE = re.compile(r"(?P<digits>-?(?:0|[1-9][0-9]{0,18}))(?:\.0+)?", re.ASCII)  # JSON Schema counts 60.0 as an integer
_MOMENT = re.compile(
    r"(?P<year>\d{4})(?P<day>-\d\d-\d\d)[Tt ](?P<minute>\d\d:\d\d):(?P<second>\d\d)"
    r"(?P<fraction>\.\d{1,6})?\d*(?P<zone>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


def read_body(kind: type[Struct] | None, body: bytes, content_type: str | None) -> Any:
    """The request body as the endpoint's struct; None for endpoints without a body."""
    if kind is None:
        if body.strip() not in (b"", b"{}"):
            raise invalid([Fault("body", "this endpoint takes no body")])
        return None
    if not body.strip() and not required(kind):
        return kind()
    if content_type is None or not _JSON_TYPE.fullmatch(content_type.strip()):
        sent = f"not {content_type[:100]!r}" if content_type else "which is missing"
        raise Refusal("unsupported-media-type", f"Send JSON with Content-Type: application/json, {sent}.")
    return read_json(kind, _text(body), "body")


def read_query(kind: type[Struct] | None, query: Mapping[str, str] | Iterable[tuple[str, str]]) -> Any:
    """The query string as the endpoint's struct; None for endpoints without parameters."""
    received: dict[str, list[str]] = {}
    for name, value in query.items() if isinstance(query, Mapping) else query:
        received.setdefault(name, []).append(value)
    fields = {} if kind is None else {field.encode_name: field for field in msgspec.structs.fields(kind)}
    faults = _unknown(received, fields, "query")
    values: dict[str, Any] = {}
    for name in [name for name in fields if name in received]:
        wanted = fields[name].type
        try:
            values[fields[name].name] = _from_query_values(wanted, received[name])
        except ValueError as error:  # msgspec.ValidationError is one
            faults.append(Fault(f"query.{name}", str(error)))
    if faults:
        raise invalid(faults)
    return None if kind is None else kind(**values)


def read_json(kind: type[S], text: str | Raw, where: str) -> S:
    """A JSON object as a struct. Raises one Refusal that lists all faults."""
    faults: list[Fault] = []
    try:
        value = _struct(kind, text, where, faults)
    except msgspec.ValidationError as error:
        raise invalid([_fault(error, where)]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "; \\ud800 to \\udfff must come in pairs" if _SURROGATE.search(_bytes(text)) else ""
        raise Refusal("malformed", f"The body is not JSON: {error}{hint}.") from None
    except RecursionError:
        raise Refusal("malformed", "The body is nested too deeply.") from None
    if faults:
        raise invalid(faults)
    return value


def required(kind: type[Struct]) -> bool:
    """True if the struct has required fields."""
    return any(field.required for field in msgspec.structs.fields(kind))


def rfc3339_time(text: str, where: str) -> datetime:
    """A timestamp of RFC 3339, clamped to the years 1970 to 2099: no job lies beyond.

    Unlike in the forms of the dashboard (`pages.filters`), the time zone is required: a program must say which one.
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise invalid([Fault(where, f"must be a timestamp like 2026-03-01T12:00:00Z, not {text[:80]!r}")])
    year, leap = match["year"], match["second"] == "60"  # a leap second counts as the second before it
    second = "59" if leap else match["second"]
    zone = match["zone"].upper().replace("Z", "+00:00")
    try:
        # Python has no year 0. Year 4 is a leap year as well, and the result is clamped anyway.
        known = "0004" if year == "0000" else year
        parsed = datetime.fromisoformat(
            f"{known}{match['day']}T{match['minute']}:{second}{match['fraction'] or ''}{zone}"
        )
        if 1900 < parsed.year < 2200:
            return min(max(parsed, EARLIEST), LATEST)
    except ValueError as error:
        raise invalid([Fault(where, f"{text[:80]!r} is not a valid timestamp: {error}")]) from None
    return EARLIEST if parsed.year < 2000 else LATEST


def an_hour_ago() -> datetime:
    """The default start of statistics."""
    return datetime.now(UTC) - timedelta(hours=1)


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Refusal("malformed", f"The body is not UTF-8: {error}.") from None


def _bytes(text: str | Raw) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def _struct(kind: type[S], text: str | Raw, where: str, faults: list[Fault]) -> S | Any:
    received = msgspec.json.decode(text, type=dict[str, Raw])
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    mine = _unknown(received, fields, where)
    missing = [name for name, field in fields.items() if field.required and name not in received]
    mine += [Fault(f"{where}.{name}", "is required") for name in missing]
    values: dict[str, Any] = {}
    for name in [name for name in fields if name in received]:
        try:
            values[fields[name].name] = _value(fields[name].type, received[name], f"{where}.{name}", mine)
        except msgspec.ValidationError as error:
            mine.append(_fault(error, f"{where}.{name}"))
    faults += mine
    return None if mine else kind(**values)


def _value(wanted: Any, text: Raw, where: str, faults: list[Fault]) -> Any:
    """One value. Structs in it, also in lists, are parsed field by field, so that a fault is located exactly."""
    kind, many = _struct_in(wanted)
    opening = bytes(text).lstrip()[:1]
    if kind is not None and many is None and opening == b"{":
        return _struct(kind, text, where, faults)
    if kind is not None and many is not None and opening == b"[":
        items = msgspec.json.decode(text, type=many)
        return [_element(kind, item, f"{where}[{number}]", faults) for number, item in enumerate(items)]
    return msgspec.json.decode(text, type=wanted)


def _element(kind: type[Struct], text: Raw, where: str, faults: list[Fault]) -> Any:
    try:
        return _struct(kind, text, where, faults)
    except msgspec.ValidationError as error:
        faults.append(_fault(error, where))
        return None


def _struct_in(wanted: Any) -> tuple[type[Struct] | None, Any]:
    """The struct type in a field's type. For a list of structs, also the list type with undecoded items."""
    if isinstance(wanted, type) and issubclass(wanted, Struct):
        return wanted, None
    if typing.get_origin(wanted) is Annotated:
        kind, many = _struct_in(wanted.__origin__)
        return kind, None if many is None else Annotated[many, *wanted.__metadata__]
    if typing.get_origin(wanted) is list:
        return _struct_in(typing.get_args(wanted)[0])[0], list[Raw]
    found = [_struct_in(part) for part in typing.get_args(wanted) if typing.get_origin(wanted) is not dict]
    return next((one for one in found if one[0] is not None), (None, None))


def _unknown(received: Iterable[str], fields: Mapping[str, Any], where: str) -> list[Fault]:
    allowed = f"known fields are {', '.join(fields)}" if fields else "there are no fields"
    return [Fault(f"{where}.{name[:80]}", f"is unknown; {allowed}") for name in received if name not in fields]


def _fault(error: Exception, where: str) -> Fault:
    match = _COMPLAINT.fullmatch(str(error))
    assert match is not None
    return Fault(where + (match["rest"] or ""), match["what"])


def _from_query_values(wanted: Any, words: list[str]) -> Any:
    """A value from its strings in a query string. Numbers and booleans are spelled as in JSON."""
    wanted = _without_unset(wanted)
    if typing.get_origin(wanted) is list:
        return msgspec.convert(words, wanted)
    if len(words) > 1:
        raise ValueError("must not be repeated")
    (word,) = words
    base = wanted.__origin__ if typing.get_origin(wanted) is Annotated else wanted
    if base is bool:
        if word not in ("true", "false"):
            raise ValueError(f"must be true or false, not {word[:80]!r}")
        return word == "true"
    if base is int or (typing.get_origin(base) is typing.Literal and isinstance(typing.get_args(base)[0], int)):
        whole = _WHOLE.fullmatch(word)
        if whole is None:
            raise ValueError(f"must be a whole number, not {word[:80]!r}")
        return msgspec.convert(int(whole["digits"]), wanted)
    return msgspec.convert(word, wanted)


def _without_unset(wanted: Any) -> Any:
    """A field's type without UnsetType."""
    if UnsetType not in typing.get_args(wanted):
        return wanted
    (kind,) = [part for part in typing.get_args(wanted) if part is not UnsetType]
    return kind
