"""Draws chains and their dependencies: a small layered layout, from left to right.

A node is to the right of everything it waits for. The main chain, whose page this is, is a straight line in the middle.
Its dependencies and dependents are above and below, each column sorted by the rows of its neighbours. Siblings, which
have the same task and the same neighbours, can be drawn as one node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

from .formatting import middle, visible
from .svg import element, text, title

MAX_NODES = 200
SIBLINGS = 4  # from this number on they are drawn as one node
URGENT = ("failed", "paused", "running", "queued", "pending", "cancelled", "succeeded")
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
    """Columns and rows of nodes. Row 0 is the middle; rows above it are negative, and may lie between two others."""

    positions: Mapping[str, tuple[int, float]]
    columns: int

    @property
    def top(self) -> float:
        return min((row for _, row in self.positions.values()), default=0.0)

    @property
    def rows(self) -> float:
        return max((row for _, row in self.positions.values()), default=0.0) - self.top + 1


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
    rows: dict[str, float] = {}
    for _ in range(4):  # a few sweeps suffice for so few nodes
        for stack in stacks.values():
            stack.sort(key=lambda id: _middle(rows, neighbours[id]))
            rows |= _centred(stack, next((id for id in stack if id in main), None))
    positions = {id: (column[id], rows[id]) for id in rows}
    return Layout(positions, max(column.values(), default=0) + 1)


def _centred(stack: Sequence[str], main: str | None) -> dict[str, float]:
    """The rows of a column: one below the other, with the node of the main chain, or else the middle, at 0."""
    if main is None:
        return {id: index - (len(stack) - 1) / 2 for index, id in enumerate(stack)}
    others = [id for id in stack if id != main]
    above = len(others) // 2
    ordered = [*others[:above], main, *others[above:]]
    return {id: float(index - above) for index, id in enumerate(ordered)}


def collapse(nodes: Sequence[Node], edges: Sequence[Edge], href: str) -> tuple[list[Node], list[Edge]]:
    """Draw siblings as one node, which leads to the whole graph (`href`), if there are at least SIBLINGS of them."""
    around: dict[str, set[tuple[str, str, bool]]] = defaultdict(set)
    for edge in edges:
        around[edge.before].add((edge.after, edge.kind, True))
        around[edge.after].add((edge.before, edge.kind, False))
    alike: dict[object, list[Node]] = defaultdict(list)
    for node in nodes:
        if not node.main and not node.here:
            alike[node.name, frozenset(around[node.id])].append(node)
    gone: set[str] = set()
    replaced: dict[str, Node] = {}
    for group in alike.values():
        if len(group) >= SIBLINGS:
            replaced[group[0].id] = _together(group, href)
            gone |= {node.id for node in group[1:]}
    kept = [replaced.get(node.id, node) for node in nodes if node.id not in gone]
    return kept, [edge for edge in edges if edge.before not in gone and edge.after not in gone]


def _together(group: Sequence[Node], href: str) -> Node:
    """One node for several. Its state is the first that needs an operator, or else the least advanced."""
    states = Counter(node.state for node in group)
    state = next((one for one in URGENT if one in states), group[0].state)
    done = states["succeeded"]
    note = f"{done} of {len(group)} done" if 0 < done < len(group) else f"all {len(group)}"
    return replace(group[0], name=f"{group[0].name} \u00d7{len(group)}", state=state, note=note, href=href)


def draw(nodes: Sequence[Node], edges: Sequence[Edge], label: str) -> Markup:
    """The graph as an SVG element of fixed size."""
    nodes = nodes[:MAX_NODES]
    plan = layout(nodes, edges)
    width = 2 * EDGE + plan.columns * (WIDTH + ACROSS) - ACROSS
    height = round(2 * EDGE + plan.rows * (HEIGHT + DOWN) - DOWN)

    def corner(id: str) -> tuple[int, int]:
        column, row = plan.positions[id]
        return EDGE + column * (WIDTH + ACROSS), round(EDGE + (row - plan.top) * (HEIGHT + DOWN))

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


def _middle(rows: Mapping[str, float], neighbours: Sequence[str]) -> float:
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
    name = text(_short(visible(node.name), 22), class_="name", x=x + 13, y=y + 19)
    state = element("tspan", escape(node.state), class_=f"word-{node.state}")
    note = element("tspan", escape(f" \u00b7 {middle(visible(node.note), 18)}")) if node.note else Markup("")
    below = element("text", state, note, class_="note", x=x + 13, y=y + 36)
    return element("a", title(label), box, stripe, name, below, href=node.href, aria_label=visible(label))


def _short(name: str, limit: int) -> str:
    """The name, shortened in its middle. A number of siblings stays."""
    first, times, number = name.rpartition(" \u00d7")
    return f"{middle(first, limit - len(number) - 2)}{times}{number}" if times else middle(name, limit)


def _arrow() -> Markup:
    tip = element("path", d="M0 0L7 3.5L0 7z", class_="tip")
    marker = element("marker", tip, id="arrow", markerWidth=7, markerHeight=7, refX=6, refY=3.5, orient="auto")
    return element("defs", marker)
