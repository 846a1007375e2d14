"""Markdown tables: the settings of the peers, and one table for each scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench.peer_faults.peers import Peer
from bench.peer_faults.scenarios import Figures

RERUNS = {
    "after completion": "again after completion", "while running": "again while running",
    "after abort": "again after abort or exit",
}  # fmt: skip
FLEET = {"exits": "exits", "idle": "idle for good"}
#: The columns of each scenario, by the figure that they show.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "kill": {
        "jobs": "jobs", "kills": "kills", "run again": "run again", "p50": "median s",
        "max": "longest s", "unstruck": "twice without cause", "stuck": "stuck", "lost": "lost",
    },
    "zombie": {
        "zombie jobs": "jobs", "taken over": "taken over", "p50": "median s",
        "accepted": "finish accepted", "zombie's result": "result stored",
        "aborted": "aborted", "stuck": "stuck", "lost": "lost",
    },
    "cut": {
        "jobs": "jobs", "cuts": "cuts", **RERUNS, **FLEET, "stuck": "stuck", "lost": "lost",
    },
    "restart": {
        "jobs": "jobs", **RERUNS, **FLEET,
        "first claim": "first claim, s", "stuck": "stuck", "lost": "lost",
    },
}  # fmt: skip
TITLES = {
    "kill": "kill: SIGKILL to workers",
    "zombie": "zombie: SIGSTOP until another worker runs the jobs, then SIGCONT",
    "cut": "cut: connections end before the answer",
    "restart": "restart: the server stops with SIGQUIT for 2 s",
    "outage": "outage: the server stops with SIGQUIT for 15 s",
}


def settings(peers: Iterable[Peer]) -> str:
    lines = [(peer.name, peer.version(), peer.settings, peer.rescue) for peer in peers]
    return _table(("", "version", "settings", "rescue"), lines)


def results(scenario: str, found: Mapping[str, Figures | str]) -> str:
    """`found`: figures by peer, or why there are none."""
    columns = COLUMNS["restart" if scenario == "outage" else scenario]
    lines = [(peer, *_cells(columns, figures)) for peer, figures in found.items()]
    return f"### {TITLES[scenario]}\n\n{_table(('', *columns.values()), lines)}"


def _cells(columns: Mapping[str, str], figures: Figures | str) -> list[str]:
    if isinstance(figures, str):
        return [figures, *[""] * (len(columns) - 1)]
    return [_text(figures.get(name)) for name in columns]


def _text(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
