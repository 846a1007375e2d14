"""Draws chains and their dependencies: a small layered layout, from left to right.

A node is to the right of everything it waits for. The main chain, whose page this is, runs along the bottom. Its
dependencies and dependents are stacked above, each column sorted by the rows of its neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from .formatting import middle, visible
from .svg import element, text, title

MAX_NODES = 200
WIDTH, HEIGHT, ACROSS, DOWN, EDGE = 168, 46, 56, 22, 14  # pixels


@dataclass(frozen=True)
class Node:
    """A job, or a chain that is drawn as one node."""

    id: str
    name: str
    state: str
    href: str
    note: str = ""  # in small type below its name
    main: bool = False  # it belongs to the main chain
    here: bool = False  # it is the job whose id is in the URL


@dataclass(frozen=True)
class Edge:
    """An arrow from one node to the next."""

    before: str
    after: str
    kind: str  # "chain": `after` continues `before`; "waits": `after` waits for `before`


@dataclass(frozen=True)
class Layout:
    """Columns and rows of nodes; row 0 is the lowest."""

    positions: Mapping[str, tuple[int, int]]
    columns: int
    rows: int


def layout(nodes: Sequence[Node], edges: Sequence[Edge]) -> Layout:
    """Assign a column and a row to each node."""
    known = {node.id for node in nodes}
    edges = [edge for edge in edges if edge.before in known and edge.after in known]
    column = _columns([node.id for node in nodes], edges)
    neighbours: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        neighbours[edge.before].append(edge.after)
        neighbours[edge.after].append(edge.before)
    main = {node.id for node in nodes if node.main}
    stacks: dict[int, list[str]] = defaultdict(list)
    for node in nodes:
        stacks[column[node.id]].append(node.id)
    rows: dict[str, int] = {}
    for _ in range(4):  # a few sweeps suffice for so few nodes
        for stack in stacks.values():
            stack.sort(key=lambda id: (id not in main, _middle(rows, neighbours[id])))
            floor = 0 if any(id in main for id in stack) or not main else 1  # row 0 is reserved for the main chain
            rows |= {id: floor + index for index, id in enumerate(stack)}
    positions = {id: (column[id], rows[id]) for id in rows}
    return Layout(positions, max(column.values(), default=0) + 1, max(rows.values(), default=0) + 1)


def draw(nodes: Sequence[Node], edges: Sequence[Edge], label: str) -> Markup:
    """The graph as an SVG element of fixed size."""
    nodes = nodes[:MAX_NODES]
    plan = layout(nodes, edges)
    width = 2 * EDGE + plan.columns * (WIDTH + ACROSS) - ACROSS
    height = 2 * EDGE + plan.rows * (HEIGHT + DOWN) - DOWN

    def corner(id: str) -> tuple[int, int]:
        column, row = plan.positions[id]
        return EDGE + column * (WIDTH + ACROSS), EDGE + (plan.rows - 1 - row) * (HEIGHT + DOWN)

    parts = [_arrow()]
    parts += [
        _edge(corner(edge.before), corner(edge.after), edge.kind)
        for edge in edges
        if edge.before in plan.positions and edge.after in plan.positions
    ]
    parts += [_node(node, *corner(node.id)) for node in nodes]
    return element(
        "svg", *parts, class_="graph", width=width, height=height, view_box=f"0 0 {width} {height}",
        role="group", aria_label=label,
    )  # fmt: skip


def _columns(ids: Sequence[str], edges: Iterable[Edge]) -> dict[str, int]:
    """The length of the longest path to each node. Cycles, which should not exist, are cut."""
    before: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        before[edge.after].append(edge.before)
    found: dict[str, int] = {}
    for start in ids:
        way, seen = [start], {start}
        while way:
            here = way[-1]
            open_ones = [id for id in before[here] if id not in found and id not in seen]
            if open_ones:
                way.append(open_ones[0])
                seen.add(open_ones[0])
            else:
                found[here] = max((found[id] + 1 for id in before[here] if id in found), default=0)
                way.pop()
    return found


def _middle(rows: Mapping[str, int], neighbours: Sequence[str]) -> float:
    known = [rows[id] for id in neighbours if id in rows]
    return sum(known) / len(known) if known else 0.0


def _edge(start: tuple[int, int], end: tuple[int, int], kind: str) -> Markup:
    x1, y1 = start[0] + WIDTH, start[1] + HEIGHT // 2
    x2, y2 = end[0] - 3, end[1] + HEIGHT // 2
    bend = max((x2 - x1) // 2, 24)
    way = f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    return element("path", class_=f"edge edge-{kind}", d=way, marker_end="url(#arrow)")


def _node(node: Node, x: int, y: int) -> Markup:
    label = f"{node.name}, {node.state}" + (f", {node.note}" if node.note else "")
    box = element("rect", class_=f"box{' here' if node.here else ''}", x=x, y=y, width=WIDTH, height=HEIGHT, rx=6)
    stripe = element("rect", class_=f"fill-{node.state}", x=x, y=y + 8, width=4, height=HEIGHT - 16, rx=2)
    name = text(middle(visible(node.name), 22), class_="name", x=x + 13, y=y + 19)
    state = element("tspan", escape(node.state), class_=f"word-{node.state}")
    note = element("tspan", escape(f" \u00b7 {middle(visible(node.note), 18)}")) if node.note else Markup("")
    below = element("text", state, note, class_="note", x=x + 13, y=y + 36)
    return element("a", title(label), box, stripe, name, below, href=node.href, aria_label=visible(label))


def _arrow() -> Markup:
    tip = element("path", d="M0 0L7 3.5L0 7z", class_="tip")
    marker = element("marker", tip, id="arrow", markerWidth=7, markerHeight=7, refX=6, refY=3.5, orient="auto")
    return element("defs", marker)
