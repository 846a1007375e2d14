"""Medians, spreads and percentiles."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest."""
    return min(values), max(values)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Growth per unit of the first coordinate, by least squares."""
    if len({x for x, _ in points}) < 2:
        return 0.0
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope


def number(value: float | None) -> str:
    """Three significant digits, thousands separated; nothing for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
