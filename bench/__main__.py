"""The command line: `python -m bench COMMAND`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bench import bloat, chains, crash, facts, hands, latency, memory, pages, places, prune, store, web, worker


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Benchmarks.")
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

    three = commands.add_parser("prune", help="claims while a long history is pruned, on both stores")
    three.add_argument("--store", choices=("sqlite", "postgres"), help="this store only")
    three.add_argument("--dsn", help="a PostgreSQL server; without it, one is started")
    three.add_argument("--jobs", type=int, default=100_000, metavar="N", help="the history (default 100,000)")

    for name, (text, what, default) in WORKERS.items():
        sub = commands.add_parser(name, help=text)
        sub.add_argument("--store", choices=("sqlite", "postgres"), default="postgres", help="(default postgres)")
        sub.add_argument("--dsn", help="a PostgreSQL server; without it, one is started")
        sub.add_argument("--jobs", type=int, default=default, metavar="N", help=f"{what} (default {default:,})")
        sub.add_argument("--repeat", type=int, default=3, metavar="N", help="repetitions, or kills (default 3)")

    options = parser.parse_args(given)
    facts.show_machine()
    if options.command in WORKERS:
        with places.store(options.store, options.dsn) as place, hands.hands(place) as some:
            with_workers(options.command, place, some, options.jobs, options.repeat)
    elif options.command == "store":
        kinds = [options.store] if options.store else ["sqlite", "postgres"]
        for kind in kinds:
            with places.store(kind, options.dsn) as place:
                if options.profile:
                    store.profile(place, max(options.batches))
                else:
                    store.run(place, options.batches, options.repeat)
    elif options.command == "prune":
        for kind in [options.store] if options.store else ["sqlite", "postgres"]:
            with places.store(kind, options.dsn) as place:
                prune.run(place, options.jobs)
    else:
        with places.store("postgres", options.dsn) as place:
            bloat.run(place, options.jobs, cursor=options.cursor == "on", snapshot=options.snapshot == "on")


WORKERS = {
    "worker": ("worker processes beside a bare loop of the same SQL", "jobs to a repetition", 100_000),
    "latency": ("an idle worker: how soon it begins, what it costs", "single jobs", 500),
    "crash": ("workers killed under a backlog: how soon their jobs run again", "the backlog", 100_000),
    "chains": ("chains of three, fan-in, fan-out and transactions beside plain jobs", "of each", 10_000),
    "web": ("a worker beside twenty live pages, and alone", "jobs to a repetition", 100_000),
    "pages": ("every view over a million finished jobs", "waiting jobs, of ten times as many", 100_000),
    "memory": ("whether a worker's memory grows", "jobs", 200_000),
}


def with_workers(command: str, place: places.Place, some: hands.Hands, jobs: int, repeat: int) -> None:
    """The benchmarks that start worker processes."""
    if command == "worker":
        worker.run(place, some, jobs, repeat)
    elif command == "latency":
        latency.run(some, jobs)
    elif command == "chains":
        chains.run(place, some, jobs)
    elif command == "pages":
        pages.run(place, some, jobs, repeat)
    elif command == "web":
        web.run(place, some, jobs, repeat)
    elif command == "crash":
        crash.run(some, jobs, repeat)
    else:
        memory.run(some, jobs)


if __name__ == "__main__":
    main()
