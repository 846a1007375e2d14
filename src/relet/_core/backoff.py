"""Backoff: the delay between a failed attempt and the next one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from ..errors import InvalidInput


class Backoff(Struct, frozen=True):
    """Exponential backoff: `base * factor ** n` seconds, at most `max`. With `jitter`, a random part of that.

    `base` and `max` may be timedeltas.
    """

    base: float = 0.5
    max: float = 30.0
    factor: float = 2.0
    jitter: bool = True

    if TYPE_CHECKING:

        def __init__(
            self, base: float | timedelta = 0.5, max: float | timedelta = 30.0, factor: float = 2.0, jitter: bool = True
        ) -> None: ...

    def __post_init__(self) -> None:
        for name, low, high in (("base", 0, 1e7), ("max", 0, 1e7), ("factor", 1, 100)):
            value = getattr(self, name)
            if isinstance(value, timedelta) and name != "factor":
                value = value.total_seconds()
                force_setattr(self, name, value)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InvalidInput(f"backoff {name} must be a number from {low:g} to {high:g}, not {value!r}")

    def delay(self, failures: int, random: float) -> float:
        """Seconds to wait after the first, second, ... failure. `random` is from 0 to 1."""
        # Without a bound, the exponent of a job with thousands of attempts would overflow a float.
        ceiling = min(self.base * self.factor ** min(max(failures - 1, 0), 64), self.max)
        return ceiling * random if self.jitter else ceiling
