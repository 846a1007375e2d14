"""Failures, grouped: jobs of one task that failed with errors which differ only in numbers, ids and the like."""

from __future__ import annotations

import re

from ..._core.job import utc
from ..._core.views import FailureGroup
from ..query import LONG, Flow, Row, bounded, read, read_only

MAX_READ = 10_000  # failed jobs, the latest first

_ID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_WHO = r"(?<=://)[^\s/@]{1,300}@"  # the user part of a URL, which may hold a password: not used for searching
_VARIES = rf"{_WHO}|{_ID}|0x[0-9a-fA-F]+|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{{6,}}\b|\d+(?:\.\d+)?"
PLACEHOLDER = "…"
_UNPRINTABLE = r"[^ -~\xa1-\uffff]+"


@bounded(LONG)
@read_only
def failures(*, limit: int) -> Flow[list[FailureGroup]]:
    """Groups of jobs that have failed, the latest first."""
    groups: dict[tuple[str, str], FailureGroup] = {}
    for row in (yield read("inspect/failures", limit=MAX_READ)):
        group = _group(row)
        key = (group.task, group.error)
        groups[key] = groups[key] + group if key in groups else group
    return sorted(groups.values(), key=lambda group: group.last_at, reverse=True)[:limit]


def _group(row: Row) -> FailureGroup:
    task, line, number, first, last, example = row
    fixed = re.split(_VARIES, line)
    printable = [piece for part in fixed for piece in re.split(_UNPRINTABLE, part)]
    search = max(printable, key=len).strip()
    return FailureGroup(task, PLACEHOLDER.join(fixed), number, utc(first), utc(last), example, search)
