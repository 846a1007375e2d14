"""The short table of a published run, which README.md and docs/benchmarks.md show between two marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import bars
from bench.environments import ROOT
from bench.results import Results
from bench.statistic import number

PAGES = (ROOT / "README.md", ROOT / "docs" / "benchmarks.md")
BETWEEN = re.compile(r"(?s)(?<=<!-- summary -->\n).*?(?=<!-- end of summary -->)")


@dataclass(frozen=True)
class Line:
    """One figure of a row: of relet, the limit, and the best of these peers."""

    title: str
    row: str
    figure: str = "rate"
    system: str = "relet"
    limit: str = "raw"
    less_is_better: bool = False
    peers: tuple[str, ...] = bars.PEERS

    def cells(self, results: Results) -> list[str]:
        own = results.median(self.row, self.system, self.figure)
        if own is None:
            return []
        limit = results.median(self.row, self.limit, self.figure)
        return [self.title, number(limit), f"**{number(own)}**", *self._best_peer(results)]

    def _best_peer(self, results: Results) -> list[str]:
        medians = {peer: results.median(self.row, peer, self.figure) for peer in self.peers}
        found = {peer: value for peer, value in medians.items() if value is not None}
        if not found:
            return ["", ""]
        best = (min if self.less_is_better else max)(found, key=lambda name: found[name])
        ratio = results.ratio(self.row, self.system, best, self.figure)
        return [f"{number(found[best])} ({best})", "" if ratio is None else f"{ratio:.2f}"]


LINES: Sequence[Line] = (
    Line("drain, 1 process, jobs/s", "drain1"),
    Line("drain, 2 processes, jobs/s", "drain2"),
    Line("enqueue 1,000 a call, jobs/s", "bulk"),
    Line("enqueue one by one, jobs/s", "single"),
    Line("1 ms of async work, 5 % fail once, jobs/s", "flaky"),
    Line("latency p50, ms", "latency", "p50", less_is_better=True),
    Line("latency p99, ms", "latency", "p99", less_is_better=True),
    Line("SQLite: drain, jobs/s", "sqlite_drain", "rate", "relet-sqlite", "raw-sqlite", peers=("huey-fsync",)),
    Line("SQLite: one by one, jobs/s", "sqlite_single", "rate", "relet-sqlite", "raw-sqlite", peers=("huey-fsync",)),
)
NO_RUN = "No run has been published yet.\n"
HEADS = ["", "bare SQL loop", "relet", "best other queue", "relet / best other"]


def table(results: Results) -> str:
    """Medians of the run; the last column is the median of the ratios within each repetition."""
    lines = [cells for line in LINES if (cells := line.cells(results))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [HEADS, ["---"] * len(HEADS), *lines]) + "\n"


def publish(results: Results, pages: Sequence[Path] = PAGES) -> list[Path]:
    """Put the table between the marks of each page."""
    for page in pages:
        page.write_text(BETWEEN.sub(lambda _: table(results), page.read_text()))
    return list(pages)
