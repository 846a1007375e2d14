"""Draws the timeline of one job as a waterfall: its waiting time, every attempt and its lease, steps, sleeps, signals.

Time runs to the right, and each row begins later than the row above. While an attempt runs, time is to scale. Long idle
times are cut short, marked, and labelled with their length, because a job may wait for a day and then run for a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

from markupsafe import Markup, escape

from ..._core.text import duration
from .formatting import cut, many, middle, visible, visible_line
from .svg import Value, element, percent, text, title

LANE, STEP_LANE, BAR, HEAD, FOOT = 46, 38, 14, 24, 24  # pixels
MAX_RUNS = 40
MAX_STEPS = 60
EDGE = 0.014  # room for half a point on a phone
LEASED = ("running", "lost")  # outcomes of attempts whose leases are drawn
LONG, SHORT = 1.2, 0.5  # an idle time longer than LONG times all attempts together is cut to SHORT times that


@dataclass(frozen=True)
class Execution:
    """One attempt. Times are seconds since 1970."""

    attempt: int
    version: int
    worker: str
    started: float
    ended: float | None
    outcome: str  # running, succeeded, retried, snoozed, released, failed, lost, cancelled, paused
    reason: str | None = None
    renewed: float | None = None  # when its lease was last renewed
    expires: float | None = None  # and until when


@dataclass(frozen=True)
class Step:
    """A durable step, a sleep, a wait or a signal. Times are seconds since 1970; a signal has no duration.

    If the store does not know when a step began, `start` is the time of the previous event of its attempt.
    """

    kind: str  # step, sleep, wait, missed, signal
    name: str
    start: float
    end: float
    note: str = ""


@dataclass(frozen=True)
class Life:
    """The input of the drawing. Times are seconds since 1970."""

    created: float
    due: float  # the first time it became, or becomes, due
    now: float
    runs: Sequence[Execution] = ()
    ended: float | None = None  # it is over, or has stopped
    next_due: float | None = None  # it waits for another attempt
    steps: Sequence[Step] = ()


class Scale:
    """Maps a time to its x coordinate, from 0 to 1."""

    def __init__(self, moments: Sequence[float], busy: Sequence[tuple[float, float]]) -> None:
        points = sorted(set(moments))
        self.spans = list(pairwise(points)) or [(points[0], points[0] + 1.0)]
        at_work = [_overlaps(span, busy) for span in self.spans]
        working = sum(to - since for (since, to), works in zip(self.spans, at_work, strict=True) if works)
        longest = working * LONG if working else float("inf")
        self.cut = [not works and to - since > longest for (since, to), works in zip(self.spans, at_work, strict=True)]
        sizes = [working * SHORT if cut else to - since for (since, to), cut in zip(self.spans, self.cut, strict=True)]
        total = sum(sizes) or 1.0
        self.shares = [size / total for size in sizes]

    def __call__(self, moment: float) -> float:
        share = 0.0
        for (since, to), size in zip(self.spans, self.shares, strict=True):
            if moment <= since:
                break
            share += size * min((moment - since) / (to - since), 1.0)
        return min(share, 1.0)

    def gaps(self) -> list[tuple[float, float]]:
        """The idle times that were cut short."""
        return [span for span, cut in zip(self.spans, self.cut, strict=True) if cut]


def _overlaps(span: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    return any(start < span[1] and end > span[0] for start, end in others)


def scale_of(life: Life) -> Scale:
    """The scale of a timeline."""
    moments = [life.created, life.ended or life.now]
    if life.due <= moments[-1] or not life.runs:
        moments.append(life.due)
    for run in life.runs:
        moments += [run.started, run.ended or life.now]
        moments += [moment for moment in (run.renewed, run.expires) if moment and run.outcome in LEASED]
    for step in life.steps:
        moments += [step.start, step.end]
    if life.next_due is not None:
        moments += [life.next_due, life.now]
    busy = [(run.started, max(run.ended or run.expires or life.now, run.started + 1e-6)) for run in life.runs]
    return Scale(moments, busy)


def draw(life: Life) -> Markup:
    """The timeline as an SVG element."""
    hidden = max(len(life.runs) - MAX_RUNS, 0)
    life = replace(life, runs=life.runs[hidden:], steps=life.steps[-MAX_STEPS:])
    scale = scale_of(life)
    rows = sorted([*_runs(life, scale), *_steps(life, scale)], key=lambda row: row.start)
    lanes = [_waiting(life, scale, hidden), *rows, *_next_state(life, scale)]
    height = HEAD + sum(lane.height for lane in lanes) + FOOT
    parts = [_hatch(), *_gaps(scale, height, life), *_moments(life, scale, height)]
    y = HEAD
    for lane in lanes:
        parts.append(element("svg", lane.drawing, x=0, y=y, width="100%", height=lane.height, class_="lane"))
        y += lane.height
    if life.ended is None:
        parts.append(_now_line(scale(life.now), height))
    label = f"Timeline of the job: {many(len(life.runs), 'attempt')}, the same as in the table below"
    return element("svg", *parts, class_="timeline", width="100%", height=height, role="img", aria_label=label)


@dataclass(frozen=True)
class _Lane:
    start: float
    height: int
    drawing: Markup


def _waiting(life: Life, scale: Scale, hidden: int) -> _Lane:
    """The lane before the first attempt: created, due, claimed."""
    first = life.runs[0].started if life.runs else (life.ended or life.now)
    due = min(max(life.due, life.created), first if life.runs or life.ended else max(life.due, life.now))
    notes = [f"due after {duration(due - life.created)}"] if due - life.created > 0.5 else ["due at once"]
    waited = first > due and not hidden
    if waited:
        notes.append(f"waited {duration(first - due)}")
    if hidden:
        notes.append(f"{many(hidden, 'earlier attempt is', 'earlier attempts are')} not drawn")
    parts = [_label("Created", "", ", ".join(notes))]
    if due > life.created:
        parts.append(_dots(scale(life.created), scale(due)))
    if waited:
        hint = f"waited {duration(first - due)} until a worker claimed it"
        parts.append(_bar(scale(due), scale(first), "waited", hint, thin=True))
    parts.append(_point(scale(life.created), "point"))
    return _Lane(life.created, LANE, element("g", *parts))


def _runs(life: Life, scale: Scale) -> list[_Lane]:
    lanes, before = [], None
    for run in life.runs:
        parts = [_label(f"#{run.attempt} {run.outcome}", _how_long(run, life.now), _where(run))]
        if before is not None and before < run.started:
            parts.append(_dots(scale(before), scale(run.started)))
        parts += _attempt(run, life.now, scale)
        before = run.ended
        lanes.append(_Lane(run.started, LANE, element("g", *parts)))
    return lanes


def _steps(life: Life, scale: Scale) -> list[_Lane]:
    lanes = []
    for step in life.steps:
        kind, took = ("wait" if step.kind == "missed" else step.kind), duration(step.end - step.start)
        parts = [
            _label(f"{step.kind} {middle(visible(step.name), 40)}", took if step.kind != "signal" else "", step.note)
        ]
        if kind == "signal":
            parts.append(_point(scale(step.end), "point signal"))
        else:
            known = min(step.end, max(life.now, step.start))
            parts.append(_bar(scale(step.start), scale(known), kind, f"{kind} {step.name}: {took}", slim=True))
            if known < step.end:
                left = f"until {_time(step.end)}"
                parts.append(_bar(scale(known), scale(step.end), f"{kind} ahead", left, slim=True))
        lanes.append(_Lane(step.start, STEP_LANE, element("g", *parts, class_="step")))
    return lanes


def _attempt(run: Execution, now: float, scale: Scale) -> list[Markup]:
    end = run.ended or now
    known = run.renewed if run.outcome == "lost" and run.renewed else end
    hint = f"attempt {run.attempt}, claim {run.version}, {run.outcome}: {duration(end - run.started)} on {run.worker}"
    parts = [_bar(scale(run.started), scale(known), run.outcome, hint)]
    if known < end:
        since = f"no heartbeat for {duration(end - known)}, then taken from its worker"
        parts.append(_bar(scale(known), scale(end), run.outcome, since, hatched=True))
    if run.expires and run.outcome in LEASED:
        left = f"its lease, held until {_time(run.expires)}"
        lease = {"x": percent(scale(run.started)), "width": percent(scale(run.expires) - scale(run.started))}
        parts.append(element("rect", title(left), class_="lease", y=37.5, height=3, rx=1.5, **lease))
        if run.renewed:
            at = percent(scale(run.renewed))
            renewed = title(f"lease last renewed {_time(run.renewed)}")
            parts.append(element("line", renewed, class_="renewed", x1=at, x2=at, y1=35, y2=43))
    return parts


def _next_state(life: Life, scale: Scale) -> list[_Lane]:
    if life.next_due is None or not life.runs:
        return []
    since, to = life.runs[-1].ended or life.now, life.next_due
    ahead = to - life.now
    note = f"due in {duration(round(ahead))}" if ahead > 0 else "due now"
    parts = [_label("Next", "", note), _dots(scale(since), scale(to)), _point(scale(to), "point next")]
    return [_Lane(to, LANE, element("g", *parts))]


def _how_long(run: Execution, now: float) -> str:
    return f"{'for' if run.ended is None else 'after'} {duration((run.ended or now) - run.started)}"


def _where(run: Execution) -> str:
    reason = visible_line(run.reason, 90)
    return f"on {middle(visible(run.worker), 36)}" + (f": {reason}" if reason else "")


def _label(strong: str, then: str, rest: str) -> Markup:
    """The label above a bar, as HTML: it is shortened with an ellipsis on a phone, which SVG text cannot be."""
    spans = [element("span", escape(cut(strong, 48)), class_="strong")]
    spans += [element("span", escape(f" {then}"))] if then else []
    spans += [element("span", escape(f" {visible(rest)}"), class_="quiet")]
    return element("foreignObject", element("div", *spans, class_="bar-label"), x=0, y=0, width="100%", height=18)


def _bar(
    start: float, end: float, kind: str, hint: str, *, thin: bool = False, slim: bool = False, hatched: bool = False
) -> Markup:
    """A bar. Its outline has the same colour, so that the shortest bar is still visible."""
    y, height = (24, 6) if thin else (20, 10) if slim else (20, BAR)
    kind = "hatched" if hatched else f"bar-{kind}"
    where: dict[str, Value] = {"x": percent(start), "width": percent(max(end - start, 0.0))}
    where |= {"y": y, "height": height, "rx": 2}
    return element("rect", title(hint), class_=f"bar {kind}", fill="url(#hatch)" if hatched else None, **where)


def _dots(start: float, end: float) -> Markup:
    return element("line", class_="dots", x1=percent(start), x2=percent(end), y1=27, y2=27)


def _point(at: float, kind: str) -> Markup:
    return element("circle", class_=kind, cx=percent(min(max(at, EDGE), 1 - EDGE)), cy=27, r=4)


def _hatch() -> Markup:
    """The pattern for unknown time: stripes, so that it differs not only by colour."""
    line = element("path", d="M-1 1l2-2M0 6l6-6M5 7l2-2", class_="stripe")
    pattern = element("pattern", line, id="hatch", width=6, height=6, patternUnits="userSpaceOnUse")
    return element("defs", pattern)


def _gaps(scale: Scale, height: int, life: Life) -> list[Markup]:
    parts = []
    for since, to in scale.gaps():
        start, end = scale(since), scale(to)
        where: dict[str, Value] = {"x": percent(start), "width": percent(end - start)}
        where |= {"y": HEAD - 4, "height": height - HEAD - FOOT + 8}
        parts.append(element("rect", title(f"{duration(to - since)}, cut short"), class_="gap", **where))
        center = (start + end) / 2
        parts.append(_break(center, HEAD - 4))
        if life.ended is not None or abs(center - scale(life.now)) > 0.2:  # else it would overlap the label "now"
            position = {"x": percent(center), "text_anchor": "middle"}
            parts.append(text(duration(to - since), class_="tick", y=height - 8, **position))
    return parts


def _break(at: float, y: int) -> Markup:
    """The mark of a break in the axis: two strokes across it."""
    strokes = element("path", class_="break", d="M-5 4l4-8M1 4l4-8")
    return element("svg", strokes, x=percent(at), y=y, width=1, height=1, overflow="visible")


def _moments(life: Life, scale: Scale, height: int) -> list[Markup]:
    """Labels of the times at which something happened, as many as fit, with priority for the first and the last."""
    candidates = [life.created, life.ended or life.now, *([life.next_due] if life.next_due else [])]
    for run in reversed(life.runs):
        candidates += [run.started, *([run.ended] if run.ended else [])]
    span = max(candidates) - min(candidates)
    room = 0.25 if 10 <= span < 86400 else 0.34  # of a phone's width
    placed: list[tuple[float, float]] = []
    for moment in candidates:
        share = scale(moment)
        if all(abs(share - other) >= room for other, _ in placed):
            placed.append((share, moment))
    parts = []
    for share, moment in placed:
        anchor = "start" if share < 0.1 else "end" if share > 0.9 else "middle"
        at = percent(share)
        parts.append(element("line", class_="grid", x1=at, x2=at, y1=HEAD - 4, y2=height - FOOT + 4))
        parts.append(_time_label(moment, span, x=at, y=12, text_anchor=anchor))
    return parts


def _time_label(moment: float, span: float, **where: Value) -> Markup:
    """The label of a time, in UTC. The script of the page replaces it by the local time."""
    form = "fraction" if span < 10 else "time" if span < 86400 else "moment"
    return text(_time(moment, span), class_="tick", data_at=f"{moment:.3f}", data_local=form, **where)


def _now_line(share: float, height: int) -> Markup:
    at = percent(share)
    anchor = "start" if share < 0.1 else "end" if share > 0.9 else "middle"
    line = element("line", class_="now", x1=at, x2=at, y1=HEAD - 4, y2=height - FOOT + 4)
    return line + text("now", class_="tick now-word", x=at, y=height - 8, text_anchor=anchor)


def _time(moment: float, span: float = 60.0) -> str:
    when = datetime.fromtimestamp(moment, UTC)
    if span < 10:
        return f"{when:%H:%M:%S}.{when.microsecond // 1000:03d}"
    return when.strftime("%H:%M:%S" if span < 86400 else "%d %b %H:%M")
