"""The findings of `doctor`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Level = Literal["ok", "info", "warning", "error"]


class Finding(Struct, frozen=True):
    """One thing that `doctor` looked at: what was seen, and what to do about it.

    `ok`: as it should be. `info`: worth knowing, nothing to be done now. `warning`: costs something, or will. `error`:
    jobs do not run, or may be lost, until it is mended. `advice` is None where there is nothing to do.
    """

    check: str
    level: Level
    text: str
    advice: str | None = None
