"""The command line: `python -m bench COMMAND`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bench import bloat, facts, places, store


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Benchmarks of the stores.")
    commands = parser.add_subparsers(dest="command", required=True)

    one = commands.add_parser("store", help="the flows beside the same SQL in a bare loop, on both stores")
    one.add_argument("--store", choices=("sqlite", "postgres"), help="this store only")
    one.add_argument("--dsn", help="a PostgreSQL server; without it, one is started (and a SQLite file is always made)")
    one.add_argument("--batches", type=int, nargs="+", default=[1, 10, 100, 500], metavar="N")
    one.add_argument("--repeat", type=int, default=7, metavar="N", help="medians of so many (default 7)")
    one.add_argument("--profile", action="store_true", help="show where the flows spend their time instead")

    two = commands.add_parser("bloat", help="claims on PostgreSQL while an old snapshot is held open")
    two.add_argument("--dsn", help="a PostgreSQL server; without it, one is started")
    two.add_argument("--jobs", type=int, default=300_000, metavar="N")
    two.add_argument("--cursor", choices=("on", "off"), default="on", help="the claim cursor (default on)")
    two.add_argument("--snapshot", choices=("on", "off"), default="on", help="the old snapshot (default on)")

    options = parser.parse_args(given)
    facts.show_machine()
    if options.command == "store":
        kinds = [options.store] if options.store else ["sqlite", "postgres"]
        for kind in kinds:
            with places.store(kind, options.dsn) as place:
                if options.profile:
                    store.profile(place, max(options.batches))
                else:
                    store.run(place, options.batches, options.repeat)
    else:
        with places.store("postgres", options.dsn) as place:
            bloat.run(place, options.jobs, cursor=options.cursor == "on", snapshot=options.snapshot == "on")


if __name__ == "__main__":
    main()
