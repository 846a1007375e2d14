"""One scenario: `python -m bench.failover.row NAME FOLDER` prints its figures as JSON."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from bench.failover.scenarios import SCENARIOS


def main(name: str, folder: str) -> None:
    print(json.dumps(SCENARIOS[name].measure(Path(folder))))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop servers and remove files, as Ctrl-C does
    main(*sys.argv[1:])
