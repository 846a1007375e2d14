"""The bars that relet has to clear, and whether a run may be used to judge at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.results import Results

PEERS = ("graphile-worker", "pg-boss", "pg-boss work", "pgqueuer", "procrastinate", "awa")
# Jobs per second of raw and the fastest peers on a quiet machine. Only their shares of raw count.
REFERENCE = {
    "drain1": {"raw": 40_200, "graphile-worker": 22_200, "pg-boss": 24_600, "pgqueuer": 8_400},
    "drain2": {"raw": 61_000, "graphile-worker": 33_700, "pg-boss": 30_900, "pgqueuer": 13_100},
    "bulk": {"raw": 44_000, "graphile-worker": 45_500, "pg-boss": 40_900, "pgqueuer": 47_400},
    "single": {"raw": 2_407, "graphile-worker": 716, "pg-boss": 847, "pgqueuer": 1_603},
}
TOLERANCE = 0.15
CALL_BOUND = 100.0  # milliseconds


@dataclass(frozen=True)
class Verdict:
    text: str
    met: bool | None  # None: not measured
    found: str = ""

    def __str__(self) -> str:
        word = {True: "met", False: "MISSED", None: "not measured"}[self.met]
        return f"{self.text}: {word}{f' ({self.found})' if self.found else ''}"


@dataclass(frozen=True)
class Bar:
    row: str
    text: str
    judge: Callable[[Results], tuple[bool | None, str]]

    def verdict(self, results: Results) -> Verdict:
        met, found = self.judge(results)
        return Verdict(self.text, met, found)


def void_reasons(results: Results) -> list[str]:
    """Peers that were held up by something: their share of raw is far below the reference."""
    found = []
    for row, reference in REFERENCE.items():
        for peer, rate in reference.items():
            share, expected = results.ratio(row, peer, "raw"), rate / reference["raw"]
            if peer != "raw" and share is not None and share < (1 - TOLERANCE) * expected:
                found.append(f"{row}: {peer} reached {share:.2f} of raw, the reference is {expected:.2f}")
    return found


def at_least(row: str, factor: float, other: str, *, system: str = "relet", other_row: str | None = None) -> Bar:
    """A rate as a multiple of another system's in the same turn."""

    def judge(results: Results) -> tuple[bool | None, str]:
        ratio = results.ratio(row, system, other, other_row=other_row)
        return (None, "") if ratio is None else (ratio >= factor, f"{ratio:.2f}")

    return Bar(row, f"{system} at least {factor:g} of {other}", judge)


def best_peer(row: str, factor: float, *, system: str = "relet") -> Bar:
    """A rate as a multiple of the fastest peer's."""

    def judge(results: Results) -> tuple[bool | None, str]:
        ratios = {peer: results.ratio(row, system, peer) for peer in PEERS}
        known = {peer: ratio for peer, ratio in ratios.items() if ratio is not None}
        if not known:
            return None, ""
        peer = min(known, key=lambda peer: known[peer])
        return known[peer] >= factor, f"{known[peer]:.2f} of {peer}"

    text = f"{system} ahead of every peer" if factor == 1 else f"{system} at least {factor:g} of the best peer"
    return Bar(row, text, judge)


def at_most_best_peer(row: str, figure: str) -> Bar:
    """A latency that no peer undercuts."""

    def judge(results: Results) -> tuple[bool | None, str]:
        mine = results.median(row, "relet", figure)
        theirs = {peer: value for peer in PEERS if (value := results.median(row, peer, figure)) is not None}
        if mine is None or not theirs:
            return None, ""
        peer = min(theirs, key=lambda peer: theirs[peer])
        return mine <= theirs[peer], f"{mine:.2f}, {peer} {theirs[peer]:.2f}"

    return Bar(row, f"median {figure} at most the best peer's", judge)


def at_most(row: str, figure: str, most: float, unit: str, *, system: str = "relet") -> Bar:
    """The worst turn counts."""

    def judge(results: Results) -> tuple[bool | None, str]:
        values = results.values(row, system, figure)
        return (max(values) <= most, f"{max(values):.3g} {unit}") if values else (None, "")

    return Bar(row, f"{system}: {figure} at most {most:g} {unit}", judge)


def _blocks_flat(results: Results) -> tuple[bool | None, str]:
    blocks = results.medians("snapshot", "relet", "blocks")
    if len(blocks) < 2:
        return None, ""
    return min(blocks) >= 0.9 * blocks[0], f"lowest {min(blocks) / blocks[0]:.2f}"


def _blocks_ahead(results: Results) -> tuple[bool | None, str]:
    mine = results.medians("snapshot", "relet", "blocks")
    ratios = {
        peer: min(a / b for a, b in zip(mine, theirs, strict=False))
        for peer in PEERS
        if (theirs := results.medians("snapshot", peer, "blocks"))
    }
    if not mine or not ratios:
        return None, ""
    peer = min(ratios, key=lambda peer: ratios[peer])
    return ratios[peer] > 1, f"closest: {ratios[peer]:.2f} of {peer}"


def _views_fast(results: Results) -> tuple[bool | None, str]:
    slowest = {path: max(results.values("views", path, "slowest")) for path in results.systems("views")}
    if not slowest:
        return None, ""
    path = max(slowest, key=lambda path: slowest[path])
    return slowest[path] <= 300, f"slowest: {slowest[path]:.0f} ms, {path}"


def _calls_fast(results: Results) -> tuple[bool | None, str]:
    slow = {call: max(results.values("calls", call, "p99")) for call in results.systems("calls")}
    if not slow:
        return None, ""
    over = [call for call, most in slow.items() if most > CALL_BOUND]
    if not over:
        call = max(slow, key=lambda call: slow[call])
        return True, f"{len(slow)} of them; the slowest: {call}, {slow[call]:.0f} ms"
    names = [f"{call}, {slow[call]:.0f} ms" for call in sorted(over, key=lambda call: -slow[call])]
    return False, f"{len(over)} of {len(slow)} are not: {'; '.join(names)}"


def _one_round_trip(results: Results) -> tuple[bool | None, str]:
    trips = results.median("round_trips", "enqueue", "round_trips")
    return (None, "") if trips is None else (trips == 1, f"{trips:g}")


BARS: Sequence[Bar] = (
    best_peer("drain1", 1.2),
    best_peer("drain2", 1.15),
    at_least("drain2", 0.65, "raw"),
    best_peer("bulk", 1.0),
    at_least("bulk", 0.5, "COPY"),
    best_peer("single", 1.0),
    at_least("single", 0.7, "INSERT"),
    best_peer("flaky", 1.0),
    best_peer("flaky", 1.0, system="relet threads"),
    at_most_best_peer("latency", "p50"),
    at_most_best_peer("latency", "p99"),
    at_most("latency", "max", 500.0, "ms"),
    at_least("network", 0.8, "local", system="1 ms delay"),
    Bar("round_trips", "a plain enqueue takes one round trip", _one_round_trip),
    at_least("features", 0.5, "plain", system="targets"),
    at_least("features", 0.5, "plain", system="max_running"),
    at_least("features", 0.4, "plain", system="fair groups"),
    at_least("features", 0.6, "plain", system="unique keys"),
    at_least("features", 0.5, "plain", system="dependencies"),
    Bar("snapshot", "every block at least 0.9 of the first", _blocks_flat),
    Bar("snapshot", "ahead of every peer in every block", _blocks_ahead),
    at_least("history", 0.95, "empty", system="full"),
    at_least("sqlite_drain", 5.0, "huey-fsync", system="relet-sqlite"),
    at_least("sqlite_single", 1.0, "huey-fsync", system="relet-sqlite"),
    at_least("sqlite_bulk", 0.5, "raw-sqlite", system="relet-sqlite"),
    at_most("memory", "mib", 100.0, "MiB"),
    at_most("memory", "growth", 5.0, "MiB"),
    at_most("soak", "growth", 10.0, "MiB"),
    at_most("soak", "bloat", 1.5, "times"),
    Bar("views", "no view takes more than 300 ms", _views_fast),
    Bar("calls", "every verb, page and request under 100 ms at p99", _calls_fast),
    at_most("start", "import_s", 0.10, "s"),
    at_most("start", "first_claim_s", 0.4, "s"),
    at_most("idle", "server_us", 150.0, "us", system="empty store"),
    at_most("idle", "server_us", 150.0, "us", system="100 queues"),
    at_most("idle", "server_us", 150.0, "us", system="100 named queues"),
    at_most("idle", "buffers", 200.0, "buffers", system="100 queues"),
    at_most("idle", "buffers", 200.0, "buffers", system="100 named queues"),
    at_most("idle", "milliseconds", 5.0, "ms", system="unknown tasks"),
)
