"""The command line: `./dev bench COMMAND`."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import report, runner, systems
from bench.environments import CACHE
from bench.failover import command as failover
from bench.lab import Lab, Options
from bench.peer_faults import command as peer_faults
from bench.plan import Plan
from bench.results import Results

COMMANDS = (
    "all", "limit", "peers", "worker", "enqueue", "latency", "flat", "features", "network", "growth", "soak", "sqlite",
    "chains", "web", "memory", "crash", "start", "idle", "tenants", "fleet", "gateway",
)  # fmt: skip
#: Their results are tables, without repetitions or bars.
SEPARATE = {"peer-faults": peer_faults, "failover": failover}
RESUMABLE = CACHE / "all.jsonl"


def main(arguments: Sequence[str] | None = None) -> int:
    parser, options = parse(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    if options.command in SEPARATE:
        code: int = SEPARATE[options.command].main(options)
        return code
    if options.command == "report":
        results = Results.merge([Results.load(file) for file in options.files])
        return finish(_plan(results.head["command"], Lab(Options())), results, options)
    return measure(parser, options)


def measure(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    settings = _settings(options)
    if settings.keep and not settings.dsn:
        parser.error("--keep needs --dsn: other servers end with the run")
    with Lab(settings) as lab:
        plan = _plan(options.command, lab)
        known = {cell.system for cell in plan.cells}
        if unknown := set(settings.only) - known:
            parser.error(f"--only {min(unknown)}: not one of {', '.join(sorted(known))}")
        results = _results(options, settings)
        try:
            runner.run(plan, lab, results)
        except KeyboardInterrupt:
            again = " Run it again to continue." if options.command == "all" else ""
            print(f"bench: interrupted.{again}", file=sys.stderr)
            return 130
    results.head["versions"] = systems.versions({record["system"] for record in results.records if "row" in record})
    results.discard_progress()
    return finish(plan, results, options)


def finish(plan: Plan, results: Results, options: argparse.Namespace) -> int:
    """Show, write, and return 1 if a measurement failed. A quick run is written only where --to says."""
    report.show(report.tables(plan, results), results)
    wanted = options.to or not results.head["options"].get("quick")
    for file in report.write(plan, results, options.to) if wanted else ():
        print(f"wrote {file}", file=sys.stderr)
    return 1 if results.errors() else 0


def parse(arguments: Sequence[str] | None) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Benchmarks. Without a command: a list of them.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in COMMANDS:
        _add_command(commands, name)
    for name, command in SEPARATE.items():
        command.add_arguments(commands.add_parser(name, help=command.HELP, description=command.HELP))
    again = commands.add_parser("report", help="render the tables and pictures of JSON files again, as one report")
    again.add_argument("files", type=Path, nargs="+", metavar="FILE")
    again.add_argument("--to", type=Path, metavar="FOLDER", help="where it goes; default as above")
    return parser, parser.parse_args(arguments)


def _add_command(commands: Any, name: str) -> None:
    text = importlib.import_module(f"bench.commands.{name}").HELP
    add = commands.add_parser(name, help=text, description=text).add_argument
    add("--quick", action="store_true", help="small sizes and one repetition, to see that it works")
    add("--repeat", type=_positive, metavar="N", help="repetitions (default 3)")
    add("--only", action="append", default=[], metavar="SYSTEM", help="only this system; repeatable")
    add("--jobs", type=_positive, metavar="N", help="so many jobs, in place of the usual number")
    add("--dsn", metavar="URL", help="this PostgreSQL server; it must let you create databases")
    add(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="of the report (default: docs/benchmarks for all, else .bench/reports)",
    )
    if name == "growth":
        add("--scale", type=float, metavar="X", help="of the large store: 1 is ten million jobs of each kind (default)")
        add("--keep", metavar="NAME", help="keep the large store in this database of --dsn, and use it again next time")
    if name == "all":
        add("--fresh", action="store_true", help="do not continue an interrupted run")
        parts = importlib.import_module("bench.commands.all").PARTS
        add(
            "--without", action="append", default=[], choices=parts, metavar="PART", help="leave a part out; repeatable"
        )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _settings(options: argparse.Namespace) -> Options:
    repeat = options.repeat or (1 if options.quick else None)
    only, without = tuple(sorted(options.only)), tuple(sorted(getattr(options, "without", ())))
    store = {name: getattr(options, name, None) for name in ("scale", "keep")}
    return Options(options.quick, repeat, only, options.dsn, options.jobs, without, **store)


def _plan(command: str, lab: Lab) -> Plan:
    plan: Plan = importlib.import_module(f"bench.commands.{command}").plan(lab)
    return plan


def _results(options: argparse.Namespace, settings: Options) -> Results:
    """New ones; of `all`, those of an interrupted run with the same settings."""
    described = {name: value for name, value in asdict(settings).items() if value and name != "dsn"}
    if options.command != "all":
        return Results.begin(options.command, described)
    if RESUMABLE.exists() and not options.fresh:
        results = Results.resume(RESUMABLE)
        if results.matches(described):
            print(f"bench: continuing the run of {results.head['date']}", file=sys.stderr)
            return results
    return Results.begin("all", described, RESUMABLE)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop servers and remove files, as Ctrl-C does
    sys.exit(main())
