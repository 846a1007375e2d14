"""A tier of torture whose PostgreSQL server crashes, too: python -m tests.torture --tier M [--sqlite]"""

from __future__ import annotations

import argparse
import sys
import tempfile
import uuid
from pathlib import Path

from relet import logs
from relet._cli.torture import TIERS, print_report
from relet._torture.run import planned, torture
from relet._torture.settings import Settings
from tests import servers
from tests.torture.test_torture import restart_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--tier", choices=list(TIERS), default="S")
    parser.add_argument("--seconds", type=float, help="in place of a tier")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sqlite", action="store_true", help="on a SQLite file, which has no server")
    options = parser.parse_args()
    logs.configure("error", as_json=False)
    seconds = options.seconds or TIERS[options.tier]
    folder = Path(tempfile.mkdtemp(prefix="relet-torture-"))
    if options.sqlite:
        return _run(f"sqlite:///{folder}/jobs.db", folder, seconds, options.seed, None)
    if not servers.local_names():
        sys.exit(servers.HOW_TO_GET_ONE)
    with servers.running() as found, found.private(servers.local_names()[0]) as server:
        return _run(server.dsn, folder, seconds, options.seed, server)


def _run(url: str, folder: Path, seconds: float, seed: int, server: servers.PrivateServer | None) -> int:
    settings = Settings(url, url, f"torture_{uuid.uuid4().hex[:8]}", str(folder), seed, seconds)
    hooks = {} if server is None else {"restart": restart_of(server)}
    report = torture(settings, planned(settings, hooks), hooks=hooks, progress=lambda text: print(text, flush=True))
    print_report(report, kept=True)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
