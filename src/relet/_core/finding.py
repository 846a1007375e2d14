"""The findings of `doctor`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Level = Literal["ok", "info", "warning", "error"]


class Finding(Struct, frozen=True):
    """The result of one check of `doctor`. `advice`: what to do about it; None: nothing.

    `ok`: as it should be. `info`: worth knowing, no action needed. `warning`: it has a cost, now or later. `error`:
    jobs do not run, or may be lost, until it is fixed.
    """

    check: str
    level: Level
    text: str
    advice: str | None = None
