"""The form of a rerun: the arguments that it contains, and those that the user has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..._client.rerun import is_stripped
from ..._core.codecs import PLAIN, codec_of
from ..._core.job import Job, State
from ..._core.redact import HIDDEN, Redact
from ...errors import InvalidInput

LONGEST = 64 * 1024  # characters of arguments that the form contains


def offers_rerun(job: Job[Any]) -> bool:
    """Whether the page of a job offers to run it again. The client would rerun a job in any state."""
    return (job.state.over or job.state is State.FAILED) and not is_stripped(job)


def encoded_with(job: Job[Any]) -> str | None:
    """The codec that encodes the arguments of a job; None: operators may read them."""
    codec = codec_of(job.payload_json)
    return None if codec == PLAIN else codec


def editable_arguments(job: Job[Any], redact: Redact) -> dict[str, Any] | None:
    """The arguments for the form, with secrets hidden. Empty: they are encoded. None: the form cannot contain them."""
    if encoded_with(job) is not None:
        return {}
    text = redact(job.payload_json)
    if len(text) <= LONGEST:
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            return value if isinstance(value, dict) else None
    return None


def changed_arguments(before: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments that differ from those of the form, for `client.rerun`; None: all are the same.

    Only these are replaced, so an argument whose secrets the form hides keeps its value.
    """
    missing = [name for name in before if name not in typed]
    if missing:
        raise InvalidInput(f"Missing: {', '.join(missing)}. A rerun can replace an argument, but not leave it out.")
    changed = {name: value for name, value in typed.items() if name not in before or _differ(value, before[name])}
    for name, value in changed.items():
        if HIDDEN in json.dumps(value):
            raise InvalidInput(
                f"{name} contains {HIDDEN}, which stands for a value that the dashboard hides. "
                f"Write the real value, or leave {name} as it was."
            )
    return changed or None


def _differ(one: Any, other: Any) -> bool:
    return json.dumps(one) != json.dumps(other)  # in Python 1 == 1.0 == True
