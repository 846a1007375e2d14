"""Findings about the schema and the clock, which every store has. Pure: figures in, findings out."""

from __future__ import annotations

from ..._core.finding import Finding
from ..._core.text import duration
from ..._core.views import ReplicaStatus

LEASE = 30.0  # seconds: the default lease of a worker


def schema(found: int, wanted: int, oldest: int = 0, release: str | None = None) -> list[Finding]:
    """Compare the version of a schema (0: no schema) with the version that this release makes.

    `oldest`: the version that a release must know to work with the schema. `release`: the release that migrated it.
    """
    if found == 0:
        text = f"there is no Relet schema yet; this release makes version {wanted}"
        return [Finding("schema", "error", text, "run app.client.migrate(), or `relet migrate`")]
    if found < wanted:
        text = f"the schema is at version {found}, this release needs {wanted}: nothing can be enqueued or run"
        return [Finding("schema", "error", text, "run app.client.migrate(), or `relet migrate`")]
    if found > wanted >= oldest:
        text = f"the schema is at version {found}, by relet {release}; this release knows {wanted}, and works with it"
        return [Finding("schema", "info", text, "upgrade relet here as well, to finish the rolling upgrade")]
    if found > wanted:
        text = f"the schema is at version {found}, this release knows {wanted}: nothing can be enqueued or run"
        return [Finding("schema", "error", text, "upgrade relet here to the release that migrated the schema")]
    return [Finding("schema", "ok", f"version {found}, as this release needs")]


def clock(before: float, server: float, after: float, lease: float = LEASE) -> list[Finding]:
    """The server's clock, read between two reads of ours. The result may be off by half of the time between those."""
    difference = server - (before + after) / 2
    unsure = (after - before) / 2
    gap = max(abs(difference) - unsure, 0.0)
    which = "ahead of" if difference > 0 else "behind"
    seen = f"the server's clock is {duration(abs(difference))} {which} this machine's (give or take {duration(unsure)})"
    if gap < 1.0:
        return [Finding("clock", "ok", seen)]
    harm = (
        "leases are not affected (only the server's clock counts), but times that programs here compute for run_at are "
        "off by as much, and so is the order of jobs in lists"
    )
    advice = "synchronise both machines by NTP (chrony, systemd-timesyncd)"
    return [Finding("clock", "warning" if gap >= lease / 3 else "info", f"{seen}: {harm}", advice)]


def replica(status: ReplicaStatus) -> Finding:
    """How far the replica is behind, and whether it serves the reads that people ask for."""
    if status.problem is None:
        return Finding("replica", "ok", f"the replica serves lists and figures, {duration(status.lag or 0.0)} behind")
    text = f"{status.problem}: lists and figures come from the primary"
    advice = "check the URL of the replica, that it runs, and that it streams from the primary (pg_stat_replication)"
    return Finding("replica", "warning", text, advice)


def not_checked(check: str, why: str, advice: str | None = None) -> Finding:
    """The finding for a check that failed."""
    lines = why.strip().splitlines() or ["no reason given"]
    return Finding(check, "info", f"could not be checked: {lines[0][:300]}", advice)
