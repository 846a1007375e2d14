"""Job ids: UUIDv7. They contain the time and sort by it. The client chooses them, so it can repeat an enqueue."""

from __future__ import annotations

import re
import uuid

from ..errors import InvalidInput

EARLIEST = 1_577_836_800.0  # 2020-01-01: the clock that made an earlier id was wrong
LATEST = 4_102_444_800.0  # 2100-01-01
_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)


def make_id(unix_time: float, random: bytes) -> str:
    """A UUIDv7 from a time and ten random bytes."""
    time, rest = f"{int(unix_time * 1000):012x}", random.hex()
    variant = "89ab"[random[9] & 3]
    return f"{time[:8]}-{time[8:]}-7{rest[:3]}-{variant}{rest[3:6]}-{rest[6:18]}"


def parse_id(value: object) -> str:
    """The canonical text of an id, or InvalidInput."""
    if isinstance(value, uuid.UUID):
        value = str(value)
    if isinstance(value, str) and _CANONICAL.fullmatch(value) and EARLIEST <= id_time(value) < LATEST:
        return value  # the usual case: uuid.UUID is ten times slower
    if isinstance(value, str):
        try:
            parsed = uuid.UUID(value)
        except ValueError:
            parsed = None
        if parsed is not None and len(value) == 36 and parsed.version == 7:
            if EARLIEST <= id_time(str(parsed)) < LATEST:
                return str(parsed)
            raise InvalidInput(f"the time in the id {value} is not between 2020 and 2100")
    example = "0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1"
    raise InvalidInput(f"a job id is a UUIDv7 such as {example}, not {value!r:.80}")


def id_time(job_id: str) -> float:
    """The time in an id, in seconds since 1970."""
    return int(job_id[:8] + job_id[9:13], 16) / 1000
