"""The limits of a queue, as `client.limit_queue` takes them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from .._core import validate
from .._core.validate import Seconds
from ..errors import InvalidInput


class QueueLimits(Struct, frozen=True, kw_only=True):
    """A change of limits. UNSET keeps a limit as it is, None removes it."""

    queue: str | None
    max_running: int | UnsetType | None = UNSET
    rate: int | UnsetType | None = UNSET
    per: Seconds | None = None
    group: str | None = None
    fair: bool | None = None

    def checked(self) -> dict[str, Any]:
        """The arguments of the flow `set_queue`."""
        self._check()
        queue = "*" if self.queue is None else validate.name("queue", self.queue)
        arguments: dict[str, Any] = {"queue": queue, "fair": self.fair}
        group = None if self.group is None else validate.text("group", self.group)
        if self.max_running is not UNSET:
            number = None if self.max_running is None else _number("max_running", self.max_running)
            arguments |= {"max_running": number} if group is None else {"group_limit": (group, number)}
        if self.rate is not UNSET:
            number = None if self.rate is None else _number("rate", self.rate)
            seconds = 1.0 if self.per is None else validate.seconds("per", self.per, minimum=0.001)
            arguments["rate"] = (group or "", number, seconds)
        return arguments

    def declared(self) -> tuple[str, dict[str, Any]]:
        """The queue, and its limits by name, for `control.declare_limits`: `rate GROUP`, `group_limit GROUP`."""
        arguments = self.checked()
        found: dict[str, Any] = {"max_running": arguments.get("max_running"), "fair": self.fair}
        if "group_limit" in arguments:
            group, number = arguments["group_limit"]
            found[f"group_limit {group}"] = number
        if "rate" in arguments:
            group, number, seconds = arguments["rate"]
            found[f"rate {group}"] = None if number is None else [number, seconds]
        return arguments["queue"], {name: value for name, value in found.items() if value is not None}

    def details(self) -> dict[str, Any]:
        """For the audit trail: what was set, and None for what was removed."""
        values = {
            "max_running": self.max_running,
            "rate": self.rate,
            "per": self.per,
            "group": self.group,
            "fair": self.fair,
        }
        removed = {name: None for name in ("max_running", "rate") if values[name] is None}
        return removed | {name: value for name, value in values.items() if value is not None and value is not UNSET}

    def _check(self) -> None:
        if self.max_running is UNSET and self.rate is UNSET and self.fair is None:
            raise InvalidInput("limit_queue needs something to set: max_running, rate with per, or fair")
        has_rate = self.rate is not UNSET and self.rate is not None
        if has_rate != (self.per is not None):
            raise InvalidInput("a rate is so many jobs in so many seconds: pass rate and per, as in rate=100, per=60")
        if self.rate is UNSET and self.max_running is UNSET and self.group is not None:
            raise InvalidInput("group is for a limit: pass max_running, or rate and per, as well")
        if self.queue is None and (self.group is not None or self.fair is not None):
            raise InvalidInput("group and fair need a queue; limits for all queues together have no groups")
        if self.fair is not None and not isinstance(self.fair, bool):
            raise InvalidInput(f"fair must be True or False, not {self.fair!r}")


def _number(name: str, value: Any) -> int:
    return validate.integer(name, value, 0, 1_000_000)
