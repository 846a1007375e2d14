"""What was asked, read and checked field by field, so that all that is wrong with it can be said at once."""

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
_WHOLE = re.compile(r"(?P<digits>-?(?:0|[1-9][0-9]{0,18}))(?:\.0+)?", re.ASCII)  # 60.0 is whole, says JSON Schema
_MOMENT = re.compile(
    r"(?P<year>\d{4})(?P<day>-\d\d-\d\d)[Tt ](?P<minute>\d\d:\d\d):(?P<second>\d\d)"
    r"(?P<fraction>\.\d{1,6})?\d*(?P<zone>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


def read_body(kind: type[Struct] | None, body: bytes, content_type: str | None) -> Any:
    """The body as what the endpoint takes; None where it takes none."""
    if kind is None:
        if body.strip() not in (b"", b"{}"):
            raise invalid([Fault("body", "nothing is to be sent here; what is asked for stands in the path")])
        return None
    if not body.strip() and not required(kind):
        return kind()
    if content_type is None or not _JSON_TYPE.fullmatch(content_type.strip()):
        sent = f"not {content_type[:100]!r}" if content_type else "which the request does not say"
        raise Refusal("unsupported-media-type", f"send JSON with Content-Type: application/json, {sent}")
    return read_json(kind, _text(body), "body")


def read_query(kind: type[Struct] | None, query: Mapping[str, str] | Iterable[tuple[str, str]]) -> Any:
    """The query string as what the endpoint takes; None where it takes none."""
    given: dict[str, list[str]] = {}
    for name, value in query.items() if isinstance(query, Mapping) else query:
        given.setdefault(name, []).append(value)
    fields = {} if kind is None else {field.encode_name: field for field in msgspec.structs.fields(kind)}
    faults = _unknown(given, fields, "query")
    values: dict[str, Any] = {}
    for name in [name for name in fields if name in given]:
        wanted = fields[name].type
        try:
            values[fields[name].name] = _from_words(wanted, given[name])
        except ValueError as error:  # msgspec's are among them
            faults.append(Fault(f"query.{name}", str(error)))
    if faults:
        raise invalid(faults)
    return None if kind is None else kind(**values)


def read_json(kind: type[S], text: str | Raw, where: str) -> S:
    """A JSON object as a struct. All that is wrong with it is told at once."""
    faults: list[Fault] = []
    try:
        value = _struct(kind, text, where, faults)
    except msgspec.ValidationError as error:
        raise invalid([_fault(error, where)]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "; \\ud800 to \\udfff come in pairs" if _SURROGATE.search(_bytes(text)) else ""
        raise Refusal("malformed", f"the body is no JSON: {error}{hint}") from None
    except RecursionError:
        raise Refusal("malformed", "the body is nested too deep") from None
    if faults:
        raise invalid(faults)
    return value


def required(kind: type[Struct]) -> bool:
    """Whether something must be said."""
    return any(field.required for field in msgspec.structs.fields(kind))


def moment(text: str, where: str) -> datetime:
    """A moment of RFC 3339. Those of before 1970 and after 2099 are as good as these: there are no jobs beyond."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise invalid([Fault(where, f"a moment is written like 2026-03-01T12:00:00Z, not {text[:80]!r}")])
    year, leap = match["year"], match["second"] == "60"  # a second that clocks leave out counts as the one before
    second = "59" if leap else match["second"]
    zone = match["zone"].upper().replace("Z", "+00:00")
    try:
        # A year that is not 0 and as long: what is outside is moved to the bounds in any case.
        known = "0004" if year == "0000" else year
        parsed = datetime.fromisoformat(
            f"{known}{match['day']}T{match['minute']}:{second}{match['fraction'] or ''}{zone}"
        )
        if 1900 < parsed.year < 2200:
            return min(max(parsed, EARLIEST), LATEST)
    except ValueError as error:
        raise invalid([Fault(where, f"{text[:80]!r} is no moment: {error}")]) from None
    return EARLIEST if parsed.year < 2000 else LATEST


def an_hour_ago() -> datetime:
    """The moment from which statistics are shown where none is given."""
    return datetime.now(UTC) - timedelta(hours=1)


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Refusal("malformed", f"the body is not UTF-8: {error}") from None


def _bytes(text: str | Raw) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def _struct(kind: type[S], text: str | Raw, where: str, faults: list[Fault]) -> S | Any:
    given = msgspec.json.decode(text, type=dict[str, Raw])
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    mine = _unknown(given, fields, where)
    missing = [name for name, field in fields.items() if field.required and name not in given]
    mine += [Fault(f"{where}.{name}", "is needed") for name in missing]
    values: dict[str, Any] = {}
    for name in [name for name in fields if name in given]:
        try:
            values[fields[name].name] = _value(fields[name].type, given[name], f"{where}.{name}", mine)
        except msgspec.ValidationError as error:
            mine.append(_fault(error, f"{where}.{name}"))
    faults += mine
    return None if mine else kind(**values)


def _value(wanted: Any, text: Raw, where: str, faults: list[Fault]) -> Any:
    """One value; structs within it are read like the whole, so that what is wrong in the hundredth is found there."""
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
    """The struct that a type is, or has in a list: then with the type of that list, its items unread."""
    if isinstance(wanted, type) and issubclass(wanted, Struct):
        return wanted, None
    if typing.get_origin(wanted) is Annotated:
        kind, many = _struct_in(wanted.__origin__)
        return kind, None if many is None else Annotated[many, *wanted.__metadata__]
    if typing.get_origin(wanted) is list:
        return _struct_in(typing.get_args(wanted)[0])[0], list[Raw]
    found = [_struct_in(part) for part in typing.get_args(wanted) if typing.get_origin(wanted) is not dict]
    return next((one for one in found if one[0] is not None), (None, None))


def _unknown(given: Iterable[str], fields: Mapping[str, Any], where: str) -> list[Fault]:
    allowed = f"there are {', '.join(fields)}" if fields else "there are none"
    return [Fault(f"{where}.{name[:80]}", f"is not known here; {allowed}") for name in given if name not in fields]


def _fault(error: Exception, where: str) -> Fault:
    match = _COMPLAINT.fullmatch(str(error))
    assert match is not None  # noqa: S101 - it matches any text
    return Fault(where + (match["rest"] or ""), match["what"])


def _from_words(wanted: Any, words: list[str]) -> Any:
    """A value from the words of a query string: numbers and truths are written as JSON writes them."""
    wanted = _given(wanted)
    if typing.get_origin(wanted) is list:
        return msgspec.convert(words, wanted)
    if len(words) > 1:
        raise ValueError("is given more than once")
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


def _given(wanted: Any) -> Any:
    """A type without the possibility that nothing was given."""
    if UnsetType not in typing.get_args(wanted):
        return wanted
    (kind,) = [part for part in typing.get_args(wanted) if part is not UnsetType]
    return kind
