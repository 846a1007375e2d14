"""Payloads and results: checks that a value is JSON which both stores accept, before it is sent to either.

Refused are NUL and lone surrogates (PostgreSQL cannot store them, SQLite can), NaN and infinities (not JSON), keys that
are not strings (they would come back as strings), and values that are nested too deep or too large.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ..errors import InvalidPayload

MAX_DEPTH = 64
MAX_BYTES = 256 * 1024
BIGGEST_INT = 2**63 - 1

_STORABLE = "JSON values, dataclasses, datetimes, UUIDs, Decimals and Enums can be stored"

_encoder = msgspec.json.Encoder(decimal_format="string", uuid_format="canonical")


def encode(
    value: Any,
    *,
    path: str = "payload",
    limit: int = MAX_BYTES,
    hook: Callable[[Any], Any] | None = None,
    plain: bool | None = None,
) -> str:
    """The JSON text of a value, or InvalidPayload with the path of the part that is refused.

    `plain`: the result of `is_plain`, if the caller has it.
    """
    if not (is_plain(value) if plain is None else plain):
        value = _builtins(value, path, hook)
        _check(value, path, 1)
    text = _encoder.encode(value)
    if len(text) > limit:
        excess = f"{len(text):,} bytes of JSON, the limit is {limit:,}"
        raise InvalidPayload(path, f"{excess}; store it elsewhere, pass its key")
    return text.decode()


def is_plain(value: Any, depth: int = 1) -> bool:  # noqa: C901 - it checks every payload, and calls cost time
    """Whether a value is valid JSON without conversion: exactly the types that a decoder returns."""
    if depth > MAX_DEPTH:
        return False
    kind = type(value)
    if kind is str:
        return "\0" not in value and (value.isascii() or _is_unicode(value))
    if kind is int:
        return bool(-BIGGEST_INT - 1 <= value <= BIGGEST_INT)
    if kind is bool or value is None:
        return True
    if kind is float:
        return math.isfinite(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or not ((key.isascii() and "\0" not in key) or is_plain(key)):
                return False
            item_kind = type(item)  # the usual types, without a call
            if item_kind is str and item.isascii() and "\0" not in item:
                continue
            if item_kind is int and -BIGGEST_INT <= item <= BIGGEST_INT:
                continue
            if not is_plain(item, depth + 1):
                return False
        return True
    if kind is list:
        for item in value:  # noqa: SIM110 - a third faster than all()
            if not is_plain(item, depth + 1):
                return False
        return True
    return False


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def decode(text: str) -> Any:
    """The value of a JSON text that a store returned."""
    return msgspec.json.decode(text)


def _builtins(value: Any, path: str, hook: Callable[[Any], Any] | None, depth: int = 1) -> Any:
    """Convert dataclasses, datetimes, UUIDs, enums and the like to plain JSON values."""
    try:
        return msgspec.to_builtins(value, enc_hook=hook, str_keys=False, builtin_types=())
    except RecursionError:
        raise InvalidPayload(path, f"nested deeper than {MAX_DEPTH}, or contains itself") from None
    except (TypeError, ValueError, NotImplementedError) as error:
        # The error has no path. Convert each part alone to find the one that is refused. Only refused values cost this.
        if depth > MAX_DEPTH:
            raise InvalidPayload(path, f"nested deeper than {MAX_DEPTH}") from None
        for part_path, part in _parts(value, path):
            _builtins(part, part_path, hook, depth + 1)
        raise InvalidPayload(path, f"{error}; {_STORABLE}") from None


def _parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The items of a container or the fields of a record, each with its path."""
    if isinstance(value, dict):
        yield from ((f"{path}.{key}", item) for key, item in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"{path}[{index}]", item) for index, item in enumerate(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((f"{path}.{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value))
    elif isinstance(value, msgspec.Struct):
        yield from ((f"{path}.{name}", getattr(value, name)) for name in value.__struct_fields__)


def _check(value: Any, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidPayload(path, f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidPayload(path, f"{value} is not JSON")
    elif isinstance(value, int) and not isinstance(value, bool):
        if not -BIGGEST_INT - 1 <= value <= BIGGEST_INT:
            raise InvalidPayload(path, "an integer of more than 64 bits; pass it as a string")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidPayload(path, f"the key {key!r} is not a string")
            _check_text(key, f"{path} (key)")
            _check(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth + 1)


def _check_text(text: str, path: str) -> None:
    if "\0" in text:
        raise InvalidPayload(path, "contains a NUL character, which PostgreSQL cannot store")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidPayload(path, f"contains a lone surrogate at character {error.start}") from None
