"""The systems that are measured: relet, bare loops as the limit, and peers at their best documented settings."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from bench import environments
from bench.environments import NODE, NodeEnvironment, PythonEnvironment

ADAPTERS = Path(__file__).parent / "adapters"
Store = Literal["postgres", "sqlite", "redis"]


@dataclass(frozen=True)
class System:
    """A queue at certain settings. `schema` names the empty database that systems may share.

    `share`: of the usual number of jobs, for queues that would take minutes otherwise. `gives_up`: what the settings
    cost, shown beside the figures. `keeps`: what is stored of a job, which explains its bytes. `unfinished`: SQL that
    counts jobs which are not over. `calls`: handler calls per job.
    """

    name: str
    schema: str
    adapter: str
    environment: PythonEnvironment | NodeEnvironment | None = None
    store: Store = "postgres"
    env: Mapping[str, str] = field(default_factory=dict)
    flaky_env: Mapping[str, str] = field(default_factory=dict)
    share: float = 1.0
    gives_up: str = ""
    keeps: str = ""
    unfinished: str | None = None
    calls: int = 1

    def command(self) -> list[str]:
        if self.environment is None:
            script = str(ADAPTERS / self.adapter)
            return [sys.executable, *(["-m", "bench.adapters.relet_adapter"] if self.is_relet else [script])]
        return [self.environment.program(), str(ADAPTERS / self.adapter)]

    @property
    def is_relet(self) -> bool:
        return self.adapter == "relet_adapter.py"

    @property
    def is_peer(self) -> bool:
        return self.environment is not None

    def jobs(self, number: int) -> int:
        return max(int(number * self.share), 100)

    def variant(self, suffix: str, *, calls: int = 1, **env: object) -> System:
        """The same system with other settings in its environment."""
        texts = {name: str(value) for name, value in env.items()}
        schema = f"{self.schema}_{suffix}" if "BENCH_FEATURE" in texts else self.schema
        schema = "".join(letter if letter.isalnum() else "_" for letter in schema)
        return replace(self, name=f"{self.name} {suffix}", schema=schema, env={**self.env, **texts}, calls=calls)


C100 = {"BENCH_CONCURRENCY": "100"}
NO_HISTORY = "finished jobs are deleted"
RELET = System(
    "relet", "relet", "relet_adapter.py", flaky_env=C100,
    keeps="the finished job with payload, times, worker and token; leases that are renewed",
    unfinished="select count(*) from relet.jobs",
)  # fmt: skip
RAW = System(
    "raw", "raw", "raw_adapter.py",
    gives_up="no handlers, lease renewal, retries or fencing", keeps="a narrow archive row without a key",
    unfinished="select count(*) from live",
)  # fmt: skip
GRAPHILE = System(
    "graphile-worker", "graphile", "graphile.mjs", NODE, flaky_env=C100,
    gives_up="a crashed worker holds up to 500 jobs for 4 hours; finished jobs leave no trace", keeps=NO_HISTORY,
    unfinished="select count(*) from graphile_worker._private_jobs",
)  # fmt: skip
GRAPHILE_DEFAULT = replace(
    GRAPHILE, name="graphile-worker default", env={"BENCH_LOCAL_QUEUE": "0"}, share=0.2,
    gives_up="a crashed worker holds its jobs for 4 hours; finished jobs leave no trace",
)  # fmt: skip
PGBOSS = System(
    "pg-boss", "pgboss", "pgboss.mjs", NODE, flaky_env={"BENCH_BATCH": "100"},
    gives_up="a hand-written loop: a batch waits for its slowest job; jobs of a crashed worker wait 15 minutes",
    keeps="the same row, updated twice; completed rows stay in the table that is claimed from",
    unfinished="select count(*) from pgboss.job where state < 'completed'",
)  # fmt: skip
PGBOSS_WORK = replace(
    PGBOSS, name="pg-boss work", schema="pgboss_work", env={"BENCH_MODE": "work"},
    gives_up="batches run one job after another; jobs of a crashed worker wait 15 minutes",
)  # fmt: skip
PGQUEUER = System(
    "pgqueuer", "pgqueuer", "pgqueuer_adapter.py", environments.PGQUEUER, flaky_env={"BENCH_BATCH": "50", **C100},
    gives_up="completions are buffered in memory; the log row has no payload",
    keeps="log rows for each status change, without the payload",
    unfinished="select count(*) from pgqueuer",
)  # fmt: skip
PROCRASTINATE = System(
    "procrastinate", "procrastinate", "procrastinate_adapter.py", environments.PROCRASTINATE, flaky_env=C100,
    share=0.06,
    gives_up="one claim per job; jobs of a crashed worker stay until your own code retries them",
    keeps="the same row, updated twice, and an event row for each change",
    unfinished="select count(*) from procrastinate_jobs where status in ('todo', 'doing')",
)  # fmt: skip
AWA = System(
    "awa", "awa", "awa_adapter.py", environments.AWA, flaky_env=C100, share=0.4,
    keeps="the tables of its queue storage engine",
    unfinished="select count(*) from awa.jobs where state <> 'completed'",
)  # fmt: skip
SQLITE = System(
    "relet-sqlite", "relet_sqlite", "relet_adapter.py", store="sqlite", flaky_env=C100,
    keeps="the finished job", unfinished="select count(*) from relet_jobs",
)  # fmt: skip
RAW_SQLITE = System(
    "raw-sqlite", "raw_sqlite", "rawsqlite_adapter.py", store="sqlite",
    gives_up="no handlers, lease renewal, retries or fencing", unfinished="select count(*) from live",
)  # fmt: skip
HUEY = System(
    "huey-fsync", "huey", "huey_adapter.py", environments.HUEY, store="sqlite", env={"BENCH_FSYNC": "1"},
    flaky_env=C100, share=0.12, gives_up="a task leaves the file before it runs: a crash loses it; no bulk enqueue",
    unfinished="select count(*) from task",
)  # fmt: skip
HUEY_FAST = replace(
    HUEY, name="huey", env={}, share=0.4,
    gives_up="a crash loses running tasks, a power failure the last commits; no bulk enqueue",
)  # fmt: skip
DRAMATIQ = System(
    "dramatiq", "redis", "dramatiq_adapter.py", environments.REDIS, store="redis", share=0.16, flaky_env=C100,
    gives_up="a power failure loses up to a second of jobs; not in your transactions",
)  # fmt: skip
CELERY = replace(DRAMATIQ, name="celery", adapter="celery_adapter.py", share=0.08)

THREADS = RELET.variant("threads", BENCH_HANDLER="thread")
PEERS = (GRAPHILE, PGBOSS, PGQUEUER)  # those within a factor of five
SLOW_PEERS = (PROCRASTINATE, AWA)
ALL = {
    system.name: system
    for system in (
        RELET, THREADS, RAW, *PEERS, GRAPHILE_DEFAULT, PGBOSS_WORK, *SLOW_PEERS,
        SQLITE, RAW_SQLITE, HUEY, HUEY_FAST, DRAMATIQ, CELERY,
    )
}  # fmt: skip


def versions(names: Collection[str]) -> dict[str, str]:
    """Packages of the peers among these systems."""
    used = {system.environment for name, system in ALL.items() if name in names and system.environment}
    found = {package: version for one in used for package, version in one.versions().items()}
    return dict(sorted(found.items()))
