"""Hides secrets in payloads, results and errors: values of keys such as "password", and passwords in URLs.

The dashboard, the HTTP API and the command line all use it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from .codecs import displayed
from .job import AttemptRecord, Chain, Dependency, Job, StepRecord
from .schedule import ScheduleInfo
from .views import AuditEntry, AuditPage, FailureGroup, JobDetails, Page, TargetInfo, TargetPage, TargetView

T = TypeVar("T")
Redact = Callable[[str], str]

KEYS = (
    "password", "passwd", "pwd", "passphrase", "secret", "token", "authorization", "api_key", "access_key",
    "private_key", "cookie", "credentials", "card_number", "cvv", "iban", "ssn",
)  # fmt: skip
HIDDEN = "[hidden]"

_CREDENTIALS = re.compile(  # bounded repeats, because it searches whole payloads
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://[^\s:/@]{0,200}):[^\s/@]{1,500}@", re.IGNORECASE
)


def redactor(keys: Iterable[str] = KEYS) -> Redact:
    """Make a function that hides the values of these keys in a JSON text. Encoded values are hidden whatever the keys.

    Case and dashes do not matter, and a key may be part of a longer name: "X-Api-Key" and "dbPassword" match as well.
    """
    patterns = [re.escape(plain) for plain in map(_plain, keys) if plain]
    if not patterns:
        return displayed
    secret_key = re.compile("|".join(patterns))

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: HIDDEN if secret_key.search(_plain(name)) else walk(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner) for inner in value]
        return string(value) if isinstance(value, str) else value

    def string(text: str) -> str:
        """Redact a string, which may itself be JSON, such as a received body. Without secrets it stays unchanged."""
        if text.lstrip()[:1] in ("{", "[", '"') and (secret_key.search(_plain(text)) or "\\u" in text):
            with suppress(ValueError, RecursionError):
                inner = json.loads(text)
                hidden = walk(inner)
                if hidden != inner:
                    return json.dumps(hidden, ensure_ascii=False)
        return without_passwords(text)

    def redact(text: str) -> str:
        text = displayed(text)
        # JSON may escape a letter, as in \u0077, so that a key does not match before decoding.
        if not (secret_key.search(_plain(text)) or "\\u" in text or _CREDENTIALS.search(text)):
            return text  # exactly as stored
        try:
            hidden = json.dumps(walk(json.loads(text)), ensure_ascii=False, allow_nan=False)
            hidden.encode()  # a lone surrogate can be decoded from JSON, but not encoded as UTF-8
            return hidden
        except (ValueError, RecursionError):
            return HIDDEN

    return redact


def without_passwords(text: str) -> str:
    """Hide the passwords of URLs in a text."""
    return _CREDENTIALS.sub(r"\g<scheme>:[hidden]@", text)


def without_passwords_in(text: str | None) -> str | None:
    return None if text is None else without_passwords(text)


def redacted(value: T, redact: Redact) -> T:
    """Redact a return value of a client: jobs and other records, lists and texts. Other values stay unchanged."""
    copy: Any = _redacted(value, redact)
    return copy  # type: ignore[no-any-return]


def _redacted(value: Any, redact: Redact) -> Any:
    """Redact a record, or each part of a page or list of them."""
    match value:
        case list() | tuple() if not hasattr(value, "_fields"):
            return type(value)(_redacted(one, redact) for one in value)
        case JobDetails():
            fields = {name: _redacted(getattr(value, name), redact) for name in value.__struct_fields__}
            return replace(value, **fields)
        case Page():
            return replace(value, jobs=_redacted(value.jobs, redact))
        case Chain():
            return Chain(_redacted(value.jobs, redact))
        case AuditPage():
            return replace(value, entries=_redacted(value.entries, redact))
        case TargetPage():
            return replace(value, targets=_redacted(value.targets, redact))
        case TargetInfo():
            return replace(value, holder=_redacted(value.holder, redact))
        case TargetView():
            return replace(value, holder=_redacted(value.holder, redact), line=_redacted(value.line, redact))
    return _redacted_record(value, redact)


def _redacted_record(value: Any, redact: Redact) -> Any:
    match value:
        case str():
            return without_passwords(value)
        case Job():
            texts = {name: _json(getattr(value, name), redact) for name in ("payload_json", "result_json", "context")}
            progress = value.progress and replace(value.progress, note=without_passwords_in(value.progress.note))
            return replace(value, **texts, error=without_passwords_in(value.error), progress=progress)
        case AttemptRecord():
            return replace(value, error=without_passwords_in(value.error))
        case StepRecord():
            texts = {name: _json(getattr(value, name), redact) for name in ("result_json", "input_json")}
            return replace(value, **texts)
        case Dependency():
            return replace(value, result_json=_json(value.result_json, redact))
        case ScheduleInfo():
            return replace(value, payload_json=redact(value.payload_json))
        case FailureGroup():
            # The search text ends before a password: it finds these jobs, and perhaps more.
            return replace(value, error=without_passwords(value.error), search=_CREDENTIALS.split(value.search)[0])
        case AuditEntry():
            return replace(value, detail=_detail(value.detail, redact))
    return value


def _detail(detail: dict[str, Any], redact: Redact) -> dict[str, Any]:
    try:
        return dict(json.loads(redact(json.dumps(detail))))
    except ValueError:
        return {"detail": HIDDEN}


def _json(text: str | None, redact: Redact) -> str | None:
    return None if text is None else redact(text)


def _plain(name: str) -> str:
    """Letters and digits only, of any script, in lower case."""
    return re.sub(r"[\W_]", "", name.casefold())
