"""Drawings: facts about their geometry."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from relet._web.pages import charts, graph, timeline
from relet._web.pages.charts import Chart, Series
from relet._web.pages.graph import Edge, Node
from relet._web.pages.timeline import Execution, Life, Scale, Step


def parse(drawing: Markup) -> ElementTree.Element:
    return ElementTree.fromstring(str(drawing))  # noqa: S314  # our own


def share(element: ElementTree.Element, name: str) -> float:
    return float(element.attrib[name].removesuffix("%"))


def of_class(root: ElementTree.Element, word: str) -> list[ElementTree.Element]:
    return [one for one in root.iter() if word in one.attrib.get("class", "").split()]


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(0, 1), (0.9, 1), (1.0, 1), (1.3, 1.6), (7, 8), (99, 100), (101, 120), (2500, 3000), (0.013, 0.016)],
)
def test_the_top_of_a_chart_is_a_round_number(value: float, rounded: float) -> None:
    assert charts.round_up(value) == pytest.approx(rounded)


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_the_top_of_a_chart_is_never_below_its_values_nor_far_above(value: float) -> None:
    assert value <= charts.round_up(value) * 1.000001 <= value * 2.1


def test_bars_are_stacked_and_reach_as_high_as_their_sum() -> None:
    series = [Series("succeeded", [30.0, 0.0], "succeeded"), Series("failed", [10.0, 40.0], "failed")]
    root = parse(charts.draw(Chart("Throughput", [0.0, 60.0], 60, series, height=140)))
    (lower,), (upper,) = of_class(root, "fill-succeeded"), of_class(root, "fill-failed")
    # The plot is 100 high and ends at 40: the sum of each step touches its top.
    assert re.findall(r"M[\d.]+ ([\d.]+)h", lower.attrib["d"]) == ["25.00"]
    assert re.findall(r"M[\d.]+ ([\d.]+)h", upper.attrib["d"]) == ["0.00", "0.00"]
    assert re.findall(r"v([\d.]+)", upper.attrib["d"]) == ["25.00", "100.00"]


def test_a_line_has_a_gap_where_nothing_is_known() -> None:
    series = [Series("p50", [1.0, 2.0, None, 1.0, 1.0, None, 2.0], "usual", line=True)]
    (line,) = of_class(parse(charts.draw(Chart("Wait", [60.0 * n for n in range(7)], 60, series))), "line")
    assert line.attrib["d"].count("M") == 3
    assert line.attrib["d"].count("L") == 2


def test_a_chart_has_its_values_as_text() -> None:
    chart = Chart("Backlog", [0.0, 60.0], 60, [Series("queued", [5.0, 3.0], "queued")])
    assert "queued: at most 5, last 3" in parse(charts.draw(chart)).attrib["aria-label"]
    empty = Chart("Backlog", [0.0], 60, [Series("queued", [None], "queued")])
    assert "Nothing happened" in parse(charts.draw(empty)).attrib["aria-label"]


@pytest.mark.parametrize(("span", "step"), [(3600, 60), (86400, 1200), (7 * 86400, 7200), (30 * 86400, 8 * 3600)])
def test_a_chart_has_a_few_round_moments_below(span: int, step: int) -> None:
    starts = [1_790_000_000.0 + step * number for number in range(span // step)]
    root = parse(charts.draw(Chart("x", starts, step, [Series("a", [1.0] * len(starts), "queued")])))
    moments = [one for one in of_class(root, "tick") if "text-anchor" in one.attrib]
    assert 4 <= len(moments) <= 8


def test_a_spike_does_not_flatten_the_other_bars() -> None:
    values = [10.0] * 59 + [5000.0]
    root = parse(
        charts.draw(Chart("x", [60.0 * n for n in range(60)], 60, [Series("a", values, "queued")], height=140))
    )
    (bars,) = of_class(root, "fill-queued")
    heights = [float(height) for height in re.findall(r"v([\d.]+)", bars.attrib["d"])]
    assert min(heights) > 50, "the usual bars fill half of the plot"
    assert max(heights) == 100, "the spike ends at the top of the plot"
    assert [one.text for one in of_class(root, "over")] == ["\u25b2 5k"], "and its value is written above"


def test_values_that_vary_are_not_cut_off() -> None:
    values = [float(n) for n in range(60)]
    root = parse(charts.draw(Chart("x", [60.0 * n for n in range(60)], 60, [Series("a", values, "queued")])))
    assert of_class(root, "over") == []


def test_a_sparkline_is_as_high_as_its_greatest_value() -> None:
    root = parse(charts.sparkline([0.0, 2.0, 4.0], "label", height=20))
    heights = [float(one.attrib["height"]) for one in of_class(root, "spark")]
    assert heights == [10.0, 19.0]


RUNS = (
    Execution(1, 1, "w1", 100.0, 110.0, "retried", "ValueError: no"),
    Execution(2, 2, "w2", 130.0, 200.0, "lost", "worker lost", renewed=150.0, expires=180.0),
    Execution(3, 3, "w1", 201.0, None, "running", renewed=205.0, expires=235.0),
)


def test_time_never_runs_backwards_on_a_scale() -> None:
    scale = timeline.scale_of(Life(90.0, 95.0, 210.0, RUNS))
    positions = [scale(float(moment)) for moment in range(90, 240)]
    assert positions == sorted(positions)
    assert scale(90.0) == 0.0
    assert scale(235.0) == pytest.approx(1.0)


def test_attempts_are_to_scale_and_long_idle_times_are_cut_short() -> None:
    day = 86400.0
    runs = (Execution(1, 1, "w", day, day + 2, "retried"), Execution(2, 2, "w", day + 3, day + 7, "succeeded"))
    scale = timeline.scale_of(Life(0.0, 0.0, day + 100, runs, ended=day + 7))
    first, second = scale(day + 2) - scale(day), scale(day + 7) - scale(day + 3)
    assert second == pytest.approx(2 * first)
    assert scale.gaps() == [(0.0, day)]
    assert scale(day) < 0.35


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=12), st.floats(0, 1e6))
def test_every_moment_has_a_position_on_a_scale(moments: list[float], moment: float) -> None:
    spans = [(moments[0], moments[0] + 5.0)]
    assert 0.0 <= Scale(moments, spans)(moment) <= 1.0


def test_every_attempt_is_a_bar_in_a_separate_lane() -> None:
    root = parse(timeline.draw(Life(90.0, 95.0, 210.0, RUNS)))
    lanes = of_class(root, "lane")
    assert len(lanes) == 1 + len(RUNS)
    assert [len(of_class(lane, f"bar-{run.outcome}")) for lane, run in zip(lanes[1:], RUNS, strict=True)] == [1, 1, 1]
    heights = [float(lane.attrib["y"]) for lane in lanes]
    assert heights == sorted(set(heights))


def test_steps_are_rows_of_a_waterfall_in_the_order_of_their_start() -> None:
    runs = (Execution(1, 1, "w", 100.0, 110.0, "snoozed"), Execution(1, 2, "w", 170.0, 172.0, "succeeded"))
    steps = (
        Step("step", "reserve", 100.0, 104.0, "-> 3"),
        Step("sleep", "a minute", 110.0, 170.0),
        Step("signal", "go", 150.0, 150.0),
    )
    life = Life(90.0, 95.0, 210.0, runs, ended=172.0, steps=steps)
    root, scale = parse(timeline.draw(life)), timeline.scale_of(life)
    labels = ["".join(label.itertext()) for label in of_class(root, "bar-label")]
    assert [label.split()[0] for label in labels] == ["Created", "#1", "step", "sleep", "signal", "#1"]
    (bar,), (nap,), (point,) = of_class(root, "bar-step"), of_class(root, "bar-sleep"), of_class(root, "signal")
    for element, since, to in ((bar, 100.0, 104.0), (nap, 110.0, 170.0)):
        assert share(element, "x") == pytest.approx(100 * scale(since), abs=0.02)
        assert share(element, "width") == pytest.approx(100 * (scale(to) - scale(since)), abs=0.02)
    assert share(point, "cx") == pytest.approx(100 * scale(150.0), abs=0.02)


def test_the_part_of_a_sleep_that_is_ahead_is_drawn_differently() -> None:
    runs = (Execution(1, 1, "w", 100.0, 110.0, "snoozed"),)
    life = Life(90.0, 95.0, 140.0, runs, next_due=170.0, steps=(Step("sleep", "a minute", 110.0, 170.0),))
    (past, ahead), (now,) = (
        of_class(parse(timeline.draw(life)), "bar-sleep"),
        of_class(parse(timeline.draw(life)), "now"),
    )
    assert "ahead" in ahead.attrib["class"]
    assert share(past, "x") + share(past, "width") == pytest.approx(share(now, "x1"), abs=0.02)
    assert share(ahead, "x") == pytest.approx(share(now, "x1"), abs=0.02)


def test_a_break_in_the_axis_is_marked_and_labelled_with_its_length() -> None:
    runs = (Execution(1, 1, "w", 86400.0, 86402.0, "succeeded"),)
    root = parse(timeline.draw(Life(0.0, 0.0, 86500.0, runs, ended=86402.0)))
    assert len(of_class(root, "break")) == len(of_class(root, "gap")) == 1
    assert "1 d" in [one.text for one in of_class(root, "tick")]


def test_the_unknown_end_of_a_lost_attempt_is_hatched() -> None:
    root = parse(timeline.draw(Life(90.0, 95.0, 210.0, RUNS)))
    (known,), (unknown,) = of_class(root, "bar-lost"), of_class(root, "hatched")
    scale = timeline.scale_of(Life(90.0, 95.0, 210.0, RUNS))
    assert share(known, "x") + share(known, "width") == pytest.approx(share(unknown, "x"), abs=0.02)
    assert share(unknown, "x") == pytest.approx(100 * scale(150.0), abs=0.02)
    assert share(unknown, "x") + share(unknown, "width") == pytest.approx(100 * scale(200.0), abs=0.02)


def test_the_lease_of_a_running_attempt_reaches_beyond_now() -> None:
    root = parse(timeline.draw(Life(90.0, 95.0, 210.0, RUNS)))
    lease, (now,) = of_class(root, "lease")[-1], of_class(root, "now")
    assert share(lease, "x") + share(lease, "width") > share(now, "x1")


def test_a_job_that_is_over_has_no_line_for_now() -> None:
    over = Life(90.0, 95.0, 210.0, RUNS[:1], ended=110.0)
    assert not of_class(parse(timeline.draw(over)), "now")


def test_a_job_that_was_never_claimed_is_drawn_too() -> None:
    for life in (Life(0.0, 0.0, 0.0), Life(0.0, 500.0, 10.0), Life(0.0, 0.0, 10.0, ended=10.0)):
        assert len(of_class(parse(timeline.draw(life)), "lane")) == 1


def test_of_very_many_attempts_the_latest_are_drawn() -> None:
    runs = [Execution(n, n, "w", 10.0 * n, 10.0 * n + 5, "retried") for n in range(1, 200)]
    root = parse(timeline.draw(Life(0.0, 0.0, 3000.0, runs, ended=2000.0)))
    assert len(of_class(root, "lane")) == 1 + timeline.MAX_RUNS
    assert "159 earlier attempts are not drawn" in "".join(root.itertext())
    assert "waited" not in "".join(root.itertext()), "the first that is drawn is not the first that there was"


def test_values_of_a_job_are_text_in_a_drawing() -> None:
    attack = "</text><script>alert(1)</script>\x1b\u202e"
    hostile, step = Execution(1, 1, "<b>w</b>", 0.0, 1.0, "retried", attack), Step("step", attack, 0.0, 1.0, attack)
    drawing = str(timeline.draw(Life(0.0, 0.0, 2.0, [hostile], steps=[step])))
    assert "<script" not in drawing
    assert "<b>" not in drawing
    assert "\u202e" not in drawing


def node(id: str, **more: object) -> Node:
    return Node(id, id, "succeeded", f"/jobs/{id}", **more)  # type: ignore[arg-type]


def test_a_node_stands_right_of_its_dependencies() -> None:
    nodes = [node("a", main=True), node("b", main=True), node("x"), node("y"), node("z")]
    edges = [Edge("a", "b", "chain"), Edge("x", "a", "waits"), Edge("y", "b", "waits"), Edge("z", "y", "waits")]
    plan = graph.layout(nodes, edges)
    for edge in edges:
        assert plan.positions[edge.before][0] < plan.positions[edge.after][0]
    assert plan.positions["a"][1] == plan.positions["b"][1] == 0
    assert plan.positions["y"][1] != 0, "the main chain alone is in the middle of its columns"


def test_columns_are_centred_on_the_main_chain() -> None:
    nodes = [node("end", main=True), *(node(f"n{number}") for number in range(7)), node("after")]
    edges = [*(Edge(f"n{number}", "end", "waits") for number in range(7)), Edge("end", "after", "waits")]
    plan = graph.layout(nodes, edges)
    assert sorted(plan.positions[f"n{number}"][1] for number in range(7)) == [-3, -2, -1, 0, 1, 2, 3]
    assert plan.positions["end"][1] == plan.positions["after"][1] == 0
    assert plan.rows == 7


def test_siblings_are_drawn_as_one_node_that_leads_to_all_of_them() -> None:
    nodes = [node("end", main=True), *(Node(f"n{n}", "collect", "succeeded", "/x") for n in range(6))]
    nodes += [Node("n6", "collect", "failed", "/x"), Node("other", "collect", "succeeded", "/x")]
    edges = [*(Edge(f"n{n}", "end", "waits") for n in range(7)), Edge("other", "n0", "waits")]
    kept, lines = graph.collapse(nodes, edges, "/all")
    assert [(one.name, one.state, one.note) for one in kept] == [
        ("end", "succeeded", ""), ("collect", "succeeded", ""), ("collect \u00d76", "failed", "5 of 6 done"),
        ("collect", "succeeded", ""),
    ]  # fmt: skip
    assert len(lines) == 3
    assert kept[2].href == "/all"


def test_no_two_nodes_share_a_position() -> None:
    nodes = [node(str(number), main=number < 5) for number in range(60)]
    edges = [Edge(str(n), str(n + 1), "chain") for n in range(4)] + [
        Edge(str(n), str(n % 5), "waits") for n in range(5, 60)
    ]
    plan = graph.layout(nodes, edges)
    assert len(set(plan.positions.values())) == 60


def test_a_circle_does_not_hang_the_layout() -> None:
    nodes = [node("a"), node("b"), node("c")]
    plan = graph.layout(nodes, [Edge("a", "b", "waits"), Edge("b", "c", "waits"), Edge("c", "a", "waits")])
    assert len(plan.positions) == 3


def test_a_graph_ends_at_its_limit_and_links_to_every_node_drawn() -> None:
    nodes = [node(f"n{number}") for number in range(graph.MAX_NODES + 50)]
    edges = [Edge(f"n{number}", f"n{number + 1}", "chain") for number in range(graph.MAX_NODES + 49)]
    root = parse(graph.draw(nodes, edges, "many"))
    links = [one.attrib["href"] for one in root.iter() if one.tag == "a"]
    assert links == [f"/jobs/n{number}" for number in range(graph.MAX_NODES)]
