"""Why leases are lost: the state of their jobs shows it. And the changes that the database itself has lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..._core.job import Lease, State
from ..query import Flow, as_json, read, read_only
from . import inspect, settle

#: "settled": under this very lease. "completed": from outside. "lease_lost": another owner has the job, or had it.
Loss = Literal["settled", "lease_lost", "completed", "deleted"]


@read_only
def losses(versions: Mapping[Lease, int]) -> Flow[dict[Lease, Loss]]:
    """Why these leases are lost. `versions`: the versions of the jobs when they were claimed."""
    settled = yield from settle.find_settled(list(versions))
    found: dict[Lease, Loss] = dict.fromkeys(settled, "settled")
    lost = [lease for lease in versions if lease not in settled]
    jobs = yield from inspect.get_many([lease.id for lease in lost])
    for lease in lost:
        job = jobs.get(lease.id)
        if job is None:
            found[lease] = "deleted"
        elif job.state is State.SUCCEEDED and job.version == versions[lease]:
            found[lease] = "completed"
        else:
            found[lease] = "lease_lost"
    return found


@read_only
def undone(versions: Mapping[Lease, int]) -> Flow[dict[Lease, State | None]]:
    """Those of the attempts whose claim or end the database has lost, and the states of their jobs.

    Attempts that run and hold their leases must not be among them. A claim counts up the version of its job, and none
    counts it down: so a lower version, or another token with the same version, proves that the database is behind what
    it has acknowledged. State None proves less: there is no such job, which an operator may have deleted.
    """
    batch = [{"id": id, "token": token, "version": version} for (id, token), version in versions.items()]
    found = (yield read("settle/find_undone", batch=as_json(batch))) if batch else []
    return {Lease(id, token): state and State(state) for id, token, state in found}
