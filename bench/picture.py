"""Bar charts as SVG, written by hand, and as PNG by a headless Chromium if there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

from bench.plan import Plan, Row
from bench.results import Results
from bench.statistic import number, spread
from bench.systems import ALL

WIDTH, LABEL, BAR, GAP, TOP = 900, 210, 20, 8, 64
PLOT = WIDTH - LABEL - 170
MARGIN = 24
STYLE = """
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #1f2328; } .dim { fill: #59636e; } .title { font-weight: 600; font-size: 15px; }
.bar { fill: #8c959f; } .own { fill: #1a7f5a; } .limit { fill: #c9d1d9; }
.spread { stroke: #1f2328; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; } text { fill: #e6edf3; } .dim { fill: #9198a1; }
  .bar { fill: #6e7681; } .own { fill: #3fb950; } .limit { fill: #30363d; } .spread { stroke: #e6edf3; }
}
"""
LIMITS = {"raw", "raw-sqlite", "COPY", "INSERT", "fsync"}
PEERS = {name for name, system in ALL.items() if system.is_peer}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def svg(plan: Plan, results: Results) -> str:
    """One chart below the other, one for each row with a single figure."""
    parts, y = [_text(MARGIN, 30, _heading(results), "title")], TOP
    for row in plan.rows:
        chart, height = _chart(row, results, y)
        parts += chart
        y += height
    size = f'width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n"


def _heading(results: Results) -> str:
    facts = results.head.get("facts", {})
    database = f"PostgreSQL {facts['postgresql']}" if "postgresql" in facts else "SQLite"
    parts = [f"relet {facts.get('relet', '')}", results.head["date"], f"{facts.get('cores')} cores", database]
    return ", ".join(parts + (["quick run"] if results.head["options"].get("quick") else []))


def _chart(row: Row, results: Results, y: int) -> tuple[list[str], int]:
    values = {system: _values(row, system, results) for system in results.systems(row.name)}
    values = {system: found for system, found in values.items() if found}
    if not values:
        return [], 0
    top = max(max(found) for found in values.values()) or 1.0
    better = "less is better" if row.less_is_better else "more is better"
    parts = [_text(MARGIN, y, row.title, "title"), _text(WIDTH - MARGIN, y, f"{row.unit}, {better}", "dim", "end")]
    for place, (system, found) in enumerate(values.items()):
        median = results.median(row.name, system, row.figure) if _is_single(row, system, results) else min(found)
        parts += _bar(system, median or 0.0, found, top, y + 14 + place * (BAR + GAP))
    return parts, 14 + len(values) * (BAR + GAP) + 36


def _is_single(row: Row, system: str, results: Results) -> bool:
    return not isinstance(results.values(row.name, system, row.figure)[0], list)


def _values(row: Row, system: str, results: Results) -> list[float]:
    found = results.values(row.name, system, row.figure)
    return results.medians(row.name, system, row.figure) if found and isinstance(found[0], list) else found


def _bar(system: str, value: float, found: list[float], top: float, y: int) -> list[str]:
    kind = "limit" if system in LIMITS else "bar" if system in PEERS else "own"
    low, high = (LABEL + PLOT * end / top for end in spread(found))
    middle = y + BAR / 2
    return [
        _text(LABEL - 10, y + 15, system, "", "end"),
        f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{max(PLOT * value / top, 1):.1f}" height="{BAR}" rx="3"/>',
        f'<line class="spread" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>',
        _text(round(max(high, LABEL + PLOT * value / top)) + 8, y + 15, number(value)),
    ]


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def to_png(source: Path, target: Path) -> bool:
    """False, with a message, if there is no Chromium or it fails."""
    browser = os.environ.get("RELET_CHROMIUM") or next((b for name in BROWSERS if (b := shutil.which(name))), None)
    if browser is None:
        print("bench: no PNG: there is no Chromium on the PATH", file=sys.stderr)
        return False
    height = int(source.read_text().partition('height="')[2].partition('"')[0])
    with tempfile.TemporaryDirectory(prefix="relet-bench-") as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        picture = [f"--window-size={WIDTH},{height}", f"--screenshot={target.resolve()}", source.resolve().as_uri()]
        done = subprocess.run([browser, *options, *picture], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0 or not target.exists():
        print(f"bench: no PNG: {browser} ended with {done.returncode}", file=sys.stderr)
        return False
    return True
