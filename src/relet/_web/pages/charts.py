"""Charts over time: pure functions from numbers to SVG.

A chart has gridlines at round numbers, times below, and a summary as its accessible label. The numbers themselves are
in the table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from markupsafe import Markup

from .formatting import short_number
from .svg import Value, element, percent, text, title

TOP, BOTTOM = 18, 22  # pixels above and below the plot
FEWEST = 12  # values, below which none counts as a spike
SPIKE = 3.0  # times the 95th percentile
ACROSS = 1000  # width of the plot in its coordinate system
MARKS = ((600, "%H:%M"), (3600, "%H:%M"), (4 * 3600, "%H:%M"), (86400, "%a %d"), (7 * 86400, "%d %b"))


@dataclass(frozen=True)
class Series:
    """One value for each step; None where no value is known."""

    name: str
    values: Sequence[float | None]
    kind: str  # its colour, a class
    line: bool = False  # else bars


@dataclass(frozen=True)
class Chart:
    """The input of a chart. Series of bars are stacked in their order, from below."""

    label: str
    starts: Sequence[float]  # of each step, seconds since 1970
    step: float
    series: Sequence[Series] = field(default_factory=tuple)
    format_value: Callable[[float], str] = short_number
    height: int = 180


def draw(chart: Chart) -> Markup:
    """The chart as an SVG element."""
    plot = chart.height - TOP - BOTTOM
    axis_max = round_up(_top(chart))
    lines, labels = _grid(chart, axis_max, plot)
    shapes = [*_bars(chart, axis_max, plot), *_lines(chart, axis_max, plot), *_hints(chart, plot)]
    box = {"view_box": f"0 0 {ACROSS} {plot}", "preserve": "none", "class_": "plot"}
    drawn = element("svg", *shapes, x=0, y=TOP, width="100%", height=plot, **box)
    return element(
        "svg", *lines, drawn, *labels, *_moments(chart), *_spikes(chart, axis_max),
        class_="chart", width="100%", height=chart.height, role="img", aria_label=_summary(chart),
    )  # fmt: skip


def sparkline(values: Sequence[float], label: str, *, width: int = 120, height: int = 24) -> Markup:
    """A few bars without axes."""
    axis_max = max(values, default=0) or 1
    each = width / max(len(values), 1)
    bars = [
        element(
            "rect", class_="spark", x=index * each, width=max(each - 1, 0.5),
            y=height - 1 - (height - 2) * value / axis_max, height=1 + (height - 2) * value / axis_max,
        )
        for index, value in enumerate(values)
        if value
    ]  # fmt: skip
    ground = element("rect", class_="ground", x=0, y=height - 1, width=width, height=1)
    box = f"0 0 {width} {height}"
    return element(
        "svg", ground, *bars, class_="sparkline", width=width, height=height, view_box=box, role="img", aria_label=label
    )


def share_bar(shares: Sequence[tuple[str, str, float]], label: str, whole: float) -> Markup:
    """One bar of parts side by side: name, colour, size. `whole`: the size that fills the width."""
    total = max(whole, sum(size for _, _, size in shares)) or 1
    at, parts = 0.0, []
    for name, kind, size in shares:
        if size:
            rect: dict[str, Value] = {"x": percent(at / total), "width": percent(size / total), "y": 0, "height": 8}
            parts.append(element("rect", title(f"{name}: {size:,.0f}"), class_=f"fill-{kind}", **rect))
            at += size
    return element("svg", *parts, class_="share", width="100%", height=8, role="img", aria_label=label)


def round_up(value: float) -> float:
    """The smallest round number that is not below `value` (1, 1.2, 1.6, 2 ... times a power of ten); 1 for zero."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    for factor in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10):
        if value <= factor * power * 1.0000001:
            return float(f"{factor * power:.12g}")
    return float(f"{10 * power:.12g}")


def _top(chart: Chart) -> float:
    """The highest value of the axis. A few spikes go beyond it if they would flatten all other values."""
    heights = sorted(height for height in _heights(chart) if height)
    greatest = heights[-1] if heights else 0.0
    if len(heights) < FEWEST:
        return greatest
    usual = heights[math.ceil(len(heights) * 0.95) - 1]
    return usual * 1.25 if greatest > SPIKE * usual else greatest


def _heights(chart: Chart) -> list[float]:
    """The height of each step: of its stacked bars, or of its highest line."""
    bars = [one.values for one in chart.series if not one.line]
    heights = [_sum(column) for column in zip(*bars, strict=True)] or [0.0] * len(chart.starts)
    for one in chart.series:
        if one.line:
            heights = [max(height, value or 0.0) for height, value in zip(heights, one.values, strict=True)]
    return heights


def _spikes(chart: Chart, axis_max: float) -> list[Markup]:
    """The values of steps that go beyond the axis. Of neighbours only the highest is labelled."""
    each, parts, before = 1 / max(len(chart.starts), 1), [], -1.0
    beyond = [(height, index) for index, height in enumerate(_heights(chart)) if height > axis_max]
    for height, index in sorted(sorted(beyond, reverse=True)[:3], key=lambda one: one[1]):
        share = (index + 0.5) * each
        if before < 0 or share - before > 0.12:
            anchor = "start" if share < 0.06 else "end" if share > 0.94 else "middle"
            label = f"\u25b2 {chart.format_value(height)}"
            parts.append(text(label, class_="tick over", x=percent(share), y=TOP - 5, text_anchor=anchor))
            before = share
    return parts


def _sum(values: Iterable[float | None]) -> float:
    return sum(value or 0.0 for value in values)


def _grid(chart: Chart, axis_max: float, plot: int) -> tuple[list[Markup], list[Markup]]:
    """Gridlines, which are drawn below the data, and their labels, which are drawn above it."""
    lines, labels = [], []
    for part in (0.0, 0.5, 1.0):
        y = TOP + plot * (1 - part) + (0.5 if part < 1 else -0.5)
        lines.append(element("line", class_="axis" if part == 0 else "grid", x1=0, x2="100%", y1=y, y2=y))
        if part:
            labels.append(text(chart.format_value(axis_max * part), class_="tick", x=0, y=y - 4))
    return lines, labels


def _moments(chart: Chart) -> list[Markup]:
    if not chart.starts:
        return []
    first, last = chart.starts[0], chart.starts[-1] + chart.step
    marks, form = _marks(first, last)
    parts = []
    for mark in marks:
        share = (mark - first) / (last - first)
        anchor = "start" if share < 0.06 else "end" if share > 0.94 else "middle"
        label = datetime.fromtimestamp(mark, UTC).strftime(form)
        form_name = "day" if "d" in form else "minute"
        where: dict[str, Value] = {"x": percent(share), "y": chart.height - 6, "text_anchor": anchor}
        parts.append(text(label, class_="tick", data_at=str(mark), data_local=form_name, **where))
    return parts


def _marks(first: float, last: float) -> tuple[list[float], str]:
    """Four to seven round times, and their strftime format."""
    every, form = next((mark for mark in MARKS if (last - first) / mark[0] <= 7.5), MARKS[-1])
    start = math.ceil(first / every) * every
    return [start + number * every for number in range(int((last - start) // every) + 1)], form


def _bars(chart: Chart, axis_max: float, plot: int) -> list[Markup]:
    each = ACROSS / max(len(chart.starts), 1)
    gap = min(each * 0.2, 2.0)
    base = [0.0] * len(chart.starts)
    parts = []
    for one in chart.series:
        if one.line:
            continue
        steps = []
        for index, value in enumerate(one.values):
            if value:
                height = min(plot * value / axis_max, max(plot - plot * base[index] / axis_max, 0.0))
                y = plot - plot * base[index] / axis_max - height
                steps.append(f"M{index * each + gap / 2:.1f} {y:.2f}h{each - gap:.2f}v{height:.2f}h{gap - each:.2f}z")
                base[index] += value
        if steps:
            parts.append(element("path", class_=f"fill-{one.kind}", d="".join(steps)))
    return parts


def _lines(chart: Chart, axis_max: float, plot: int) -> list[Markup]:
    """Lines through the middle of each step. An unknown value leaves a gap; a value between two gaps is a dash."""
    each = ACROSS / max(len(chart.starts), 1)
    parts = []
    for one in chart.series:
        if not one.line:
            continue
        path, before = [], False
        for index, value in enumerate(one.values):
            if value is not None:
                x, y = (index + 0.5) * each, max(plot - plot * value / axis_max, 0.0)
                alone = not before and (index + 1 >= len(one.values) or one.values[index + 1] is None)
                path.append(
                    f"M{x - each / 3:.1f} {y:.2f}h{each * 2 / 3:.1f}"
                    if alone
                    else f"{'L' if before else 'M'}{x:.1f} {y:.2f}"
                )
            before = value is not None
        if path:
            parts.append(
                element("path", class_=f"line line-{one.kind}", d="".join(path), vector_effect="non-scaling-stroke")
            )
    return parts


def _hints(chart: Chart, plot: int) -> list[Markup]:
    """Invisible rectangles with the numbers of each step as tooltips."""
    each = ACROSS / max(len(chart.starts), 1)
    form = "%H:%M" if chart.step < 3600 else "%a %d %b %H:%M"
    parts = []
    for index, start in enumerate(chart.starts):
        known = [(one.name, one.values[index]) for one in chart.series]
        texts = [f"{name} {chart.format_value(value)}" for name, value in known if value]
        if texts:
            when = datetime.fromtimestamp(start, UTC).strftime(form)
            hint = title(f"{when} UTC: {', '.join(texts)}")
            box: dict[str, Value] = {"x": index * each, "y": 0, "width": each, "height": plot}
            parts.append(element("rect", hint, class_="hint", data_at=str(start), **box))
    return parts


def _summary(chart: Chart) -> str:
    parts = []
    for one in chart.series:
        known = [value for value in one.values if value is not None]
        if known:
            parts.append(f"{one.name}: at most {chart.format_value(max(known))}, last {chart.format_value(known[-1])}")
    return f"{chart.label}. {'; '.join(parts) or 'Nothing happened in this time'}."
