"""Positions in the write-ahead log, which show how far a standby is behind its primary. PostgreSQL only."""

from __future__ import annotations

from typing import NamedTuple

from ..query import Flow, read, read_only


class Written(NamedTuple):
    """How many bytes of log the primary has flushed, and written in all, and the identifier of its cluster."""

    flushed: int
    position: int
    cluster: int


class Replayed(NamedTuple):
    """How many bytes of log a standby has replayed (None: the server is no standby), the identifier of its cluster, and
    for how many seconds it has replayed no commit (None: it never has)."""

    position: int | None
    cluster: int
    quiet: float | None


@read_only
def written() -> Flow[Written]:
    return Written(*(yield read("replica/primary"))[0])


@read_only
def replayed() -> Flow[Replayed]:
    return Replayed(*(yield read("replica/standby"))[0])
