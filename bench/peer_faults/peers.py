"""The facts about each peer that the harness needs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from bench import environments, machine
from bench.environments import NODE, NodeEnvironment, PythonEnvironment

ADAPTERS = Path(__file__).parent / "adapters"


@dataclass(frozen=True)
class Peer:
    """`states`: SQL for the number of each job that is stored, and `queued`, `running`, `failed` or `done`; a job that
    is not there is done. `results`: the number of each job and the run whose result is stored. `unlock`: what a
    supervisor has to call for the pool of a worker that has ended. `age`: makes the lock of a pool as old as it has to
    be, if no one can wait for that.
    """

    name: str
    package: str
    adapter: str
    settings: str
    rescue: str
    states: str
    environment: PythonEnvironment | NodeEnvironment | None = None
    results: str = ""
    unlock: str = ""
    age: str = ""

    def command(self, role: str) -> list[str]:
        program = self.environment.program() if self.environment else sys.executable
        return [program, str(ADAPTERS / self.adapter), role]

    def version(self) -> str:
        return self.environment.versions()[self.package] if self.environment else machine.package_version("relet")


RELET = Peer(
    "Relet", "relet", "relet_adapter.py",
    "lease 3 s, 25 attempts", "workers reap expired leases",
    """select (payload->>'number')::int, case state when 'running' then 'running' when 'failed' then 'failed'
    else 'queued' end from relet.jobs union all select (payload->>'number')::int, 'done' from relet.finished""",
    results="select (payload->>'number')::int, result#>>'{}' from relet.finished",
)  # fmt: skip
PROCRASTINATE = Peer(
    "procrastinate", "procrastinate", "procrastinate_adapter.py",
    "heartbeat 1 s, stalled after 3 s, polling 1 s, 25 attempts",
    "the periodic task of its guide, every 2 s, with a high priority",
    """select (args->>'number')::int, case status when 'todo' then 'queued' when 'doing' then 'running'
    when 'succeeded' then 'done' else 'failed' end from procrastinate_jobs where task_name = 'work'""",
    environments.PROCRASTINATE,
)  # fmt: skip
PGQUEUER = Peer(
    "pgqueuer", "pgqueuer", "pgqueuer_adapter.py",
    "heartbeat_timeout 3 s, dequeue_timeout 1 s, asyncpg pool, shutdown_on_listener_failure, 25 attempts",
    "workers pick jobs with an old heartbeat",
    """select (convert_from(payload, 'utf8')::json->>'number')::int, case status::text when 'picked' then 'running'
    when 'queued' then 'queued' else 'failed' end from pgqueuer""",
    environments.PGQUEUER,
)  # fmt: skip
GRAPHILE = Peer(
    "graphile-worker", "graphile-worker", "graphile.mjs",
    "pollInterval 1 s, resetLocked every 1 to 2 s, no batches, 25 attempts",
    "the supervisor calls force_unlock_workers for a process that ended; else a lock lasts 4 h, which is fixed",
    """select (payload->>'number')::int, case when locked_at is not null then 'running'
    when attempts >= max_attempts then 'failed' else 'queued' end from graphile_worker._private_jobs""",
    NODE,
    unlock="select graphile_worker.force_unlock_workers(array[%s])",
    age="update graphile_worker._private_jobs set locked_at = locked_at - interval '5 hours' where locked_by = %s",
)  # fmt: skip
PGBOSS = Peer(
    "pg-boss", "pg-boss", "pgboss.mjs",
    "heartbeatSeconds 10 (the least), refreshed every 3 s, supervise and monitor every 1 s, polling 0.5 s, "
    "burstWhenBatchFull, 25 retries",
    "workers fail and retry jobs with an old heartbeat",
    """select (data->>'number')::int, case state::text when 'active' then 'running' when 'completed' then 'done'
    when 'created' then 'queued' when 'retry' then 'queued' else 'failed' end from pgboss.job where name = 'work'""",
    NODE,
    results="select (data->>'number')::int, output->>'value' from pgboss.job where name = 'work'",
)  # fmt: skip
PEERS = {peer.name: peer for peer in (RELET, PROCRASTINATE, PGQUEUER, GRAPHILE, PGBOSS)}
