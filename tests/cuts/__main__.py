"""`./dev cuts`: all of it."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests import servers
from tests.cuts.cut_stores import CutStore, SQLiteCutStore, postgres_cut_store
from tests.cuts.run import check
from tests.cuts.verbs import cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev cuts", description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgres"), help="by default both")
    parser.add_argument("--seed", type=int, default=0, help="chooses the cases, if --share is less than 1")
    parser.add_argument("--share", type=float, default=1.0, help="how many of the cases: 0.1 is a tenth")
    parser.add_argument("--only", action="append", default=[], metavar="VERB", help="verbs whose names begin so")
    given = parser.parse_args()
    wrong = known = 0
    for kind in [given.store] if given.store else ["sqlite", "postgres"]:
        total, began = 0, time.monotonic()
        with _cut_store(kind) as cut_store:
            for verb in cases(given.only):
                number, found = check(cut_store, verb, share=given.share, seed=given.seed)
                bad = [one for one in found if one.known is None]
                total, wrong, known = total + number, wrong + len(bad), known + len(found) - len(bad)
                print(f"{kind:9} {verb.name:28} {number:5} cases, {len(bad)} wrong", flush=True)
                for one in found:
                    print(one, flush=True)
                if bad:
                    print(f"again: ./dev cuts --store {kind} --only {verb.name!r}", flush=True)
        print(f"{kind}: {total} cases in {time.monotonic() - began:.0f} s", flush=True)
    print(f"{wrong} wrong, {known} that differ for a reason that is known")
    return 1 if wrong else 0


@contextmanager
def _cut_store(kind: str) -> Iterator[CutStore]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder, closing(SQLiteCutStore(Path(folder))) as of_sqlite:
            yield of_sqlite
        return
    names = servers.names()
    if not names:
        sys.exit(servers.HOW_TO_GET_ONE)
    with servers.running() as found:
        server, schema = found.get(names[0]), f"t_{uuid.uuid4().hex[:12]}"
        with postgres_cut_store(server.dsn, schema) as cut_store:
            yield cut_store
        server.drop_schema(schema)


if __name__ == "__main__":
    sys.exit(main())
