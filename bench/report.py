"""From results to tables: for the terminal and for docs/benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import bars, picture, summary
from bench.environments import CACHE, ROOT
from bench.plan import Plan, Row
from bench.results import Results
from bench.statistic import number, spread
from bench.systems import ALL

DOCS = ROOT / "docs" / "benchmarks"


@dataclass
class Table:
    title: str
    heads: list[str]
    lines: list[list[str]]
    verdicts: list[bars.Verdict] = field(default_factory=list)

    def trimmed(self) -> Table:
        """Without columns that are empty."""
        used = [column for column in range(len(self.heads)) if any(line[column] for line in self.lines)]
        lines = [[line[column] for column in used] for line in self.lines]
        return Table(self.title, [self.heads[column] for column in used], lines, self.verdicts)


def tables(plan: Plan, results: Results) -> list[Table]:
    """One for each row that was measured, with its bars."""
    return [_table(row, results) for row in plan.rows if results.systems(row.name)]


def _table(row: Row, results: Results) -> Table:
    heads = [
        "system",
        f"{row.unit}, median",
        "lowest to highest",
        f"of {row.against}",
        *row.details,
        "others",
        row.note,
    ]
    lines = [_line(row, system, results) for system in results.systems(row.name)]
    verdicts = [bar.verdict(results) for bar in bars.BARS if bar.row == row.name]
    return Table(row.title, heads, lines, verdicts).trimmed()


def _line(row: Row, system: str, results: Results) -> list[str]:
    values = results.values(row.name, system, row.figure)
    if values and isinstance(values[0], list):
        shown, between = "  ".join(number(value) for value in results.medians(row.name, system, row.figure)), ""
        ratio = None
    else:
        shown = number(results.median(row.name, system, row.figure))
        between = " to ".join(number(value) for value in spread(values)) if len(values) > 1 else ""
        ratio = results.ratio(row.name, system, row.against, row.figure)
    details = [_detail(row, system, name, results) for name in row.details]
    others = results.values(row.name, system, "others")
    return [
        system, shown, between, "" if ratio is None else f"{ratio:.2f}", *details,
        f"{max(others):.2f}" if others else "", _note(row, system, results),
    ]  # fmt: skip


def _detail(row: Row, system: str, name: str, results: Results) -> str:
    values = results.values(row.name, system, name)
    if values and isinstance(values[0], list):
        return " ".join(number(value) for value in results.medians(row.name, system, name))
    return number(results.median(row.name, system, name)) if values else ""


def _note(row: Row, system: str, results: Results) -> str:
    texts: list[str] = results.values(row.name, system, "note")
    known = ALL.get(system)
    return texts[-1] if texts else str(getattr(known, row.note.replace(" ", "_"), "")) if known else ""


def show(found: Sequence[Table], results: Results) -> None:
    """On the terminal by rich, elsewhere as aligned text."""
    for table in found:
        _show(table)
    for line in closing(results):
        print(line)
    sys.stdout.flush()  # before the picture, which takes a while


def _show(table: Table) -> None:
    print(f"\n{table.title}")
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable(*table.heads, box=None, padding=(0, 2, 0, 0))
        for line in table.lines:
            drawn.add_row(*(Text(cell) for cell in line))
        Console().print(drawn)
    else:
        rows = [table.heads, *table.lines]
        widths = [max(len(row[column]) for row in rows) for column in range(len(table.heads))]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for verdict in table.verdicts:
        print(f"  bar: {verdict}")


def closing(results: Results) -> list[str]:
    """The skipped and failed cells, and whether the run counts."""
    lines = [f"skipped {system}: {reason}" for system, reason in results.skipped().items()]
    lines += [f"ERROR: {error}" for error in results.errors()]
    lines += [f"VOID: {reason}" for reason in bars.void_reasons(results)]
    return ["", *lines] if lines else []


def write(plan: Plan, results: Results, folder: Path | None = None) -> list[Path]:
    """Tables, pictures and JSON. Runs of `all` are published in docs/benchmarks, where only the JSON has a date, and as
    a short table in README.md and docs/benchmarks.md."""
    published = results.head["command"] == "all" and folder is None
    dated = f"{results.head['date']}-{results.head['command']}"
    folder = DOCS if published else folder or CACHE / "reports"
    name = "latest" if published else dated
    data, svg, page = folder / f"{dated}.json", folder / f"{name}.svg", folder / f"{name}.md"
    results.save(data)
    svg.write_text(picture.svg(plan, results))
    page.write_text(markdown(plan, results, name))
    png = svg.with_suffix(".png")
    summaries = summary.publish(results) if published else []
    return [data, page, svg, *summaries, *([png] if picture.to_png(svg, png) else [])]


def markdown(plan: Plan, results: Results, name: str) -> str:
    parts = ["# Benchmarks", f"Measured on {results.head['date']} by `./dev bench {results.head['command']}`."]
    parts += [_machine(results), f"![Bar charts of the tables below]({name}.svg)"]
    for table in tables(plan, results):
        lines = [table.heads, ["---"] * len(table.heads), *table.lines]
        parts += [f"## {table.title}", "\n".join(f"| {' | '.join(line)} |" for line in lines)]
        parts += ["\n".join(f"- bar: {verdict}" for verdict in table.verdicts)] if table.verdicts else []
    parts += ["\n".join(f"- {line}" for line in closing(results) if line)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _machine(results: Results) -> str:
    facts, head = results.head.get("facts", {}), results.head
    programs = {
        f"relet {facts.get('relet')}": f"at {head['revision']}",
        "Python": facts.get("python"),
        "psycopg": facts.get("psycopg"),
        "SQLite": facts.get("sqlite"),
        "PostgreSQL": facts.get("postgresql"),
        **head.get("versions", {}),
    }
    lines = [
        f"Machine: {facts.get('cores')} cores ({facts.get('processor')}), {facts.get('memory_gib')} GiB, "
        f"{facts.get('system')}.",
        f"Versions: {', '.join(f'{name} {version}' for name, version in programs.items() if version)}.",
        f"PostgreSQL settings: {', '.join(f'{name} {value}' for name, value in facts.get('settings', {}).items())}.",
        "`others` is how many cores other programs used meanwhile; CPU is in microseconds per job.",
    ]
    quick = ["A quick run: too short to judge by."] if head["options"].get("quick") else []
    added = [f"Measured apart, on the same machine: {', '.join(head['added'])}."] if "added" in head else []
    return "\n".join(f"- {line}" for line in [*quick, *lines, *added])
