"""Why leases are lost: the state of their jobs shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..._core.job import Lease, State
from ..query import Flow, read_only
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
