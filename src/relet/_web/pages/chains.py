"""The page of a chain: its jobs and their dependencies as a graph."""

from __future__ import annotations

from collections import deque
from typing import Any

from ..._core.job import Chain, Dependency, Job, State
from ...errors import InvalidInput, JobNotFound
from . import graph
from .formatting import about, duration, many
from .page import Page, PageContext, PageNotFound

MAX_CHAINS_READ = 60  # chains that are read for one drawing


def chain(view: PageContext, id: str) -> Page:
    """The page of a chain; the id may be that of any of its jobs."""
    try:
        found = view.client.chain(id)
    except InvalidInput as error:
        raise PageNotFound(f"Invalid chain id: {error}.") from None
    drawing = Drawing(view, id)
    drawing.add_main(found)
    drawing.add_dependents(found)
    drawing.follow()
    nodes, edges = drawing.nodes, drawing.edges
    if not view.query.get("expand"):
        nodes, edges = graph.collapse(nodes, edges, view.link(f"/chains/{id}", expand="all"))
    context: dict[str, Any] = {
        "chain": found,
        "drawing": graph.draw(nodes, edges, f"The chain and its dependencies: {many(len(drawing.nodes), 'node')}"),
        "collapsed": len(nodes) < len(drawing.nodes),
        "id": id,
        "cut": drawing.cut,
        "nodes": len(drawing.nodes),
        "edges": drawing.in_words(),
    }
    return Page(f"Chain of {found[0].task}", "chain.html", context)


class Drawing:
    """Collects nodes and edges, up to the limits of a drawing."""

    def __init__(self, view: PageContext, here: str) -> None:
        self.view = view
        self.here = here
        self.nodes: list[graph.Node] = []
        self.edges: list[graph.Edge] = []
        self.cut = False
        self._known: set[str] = set()
        self._open: deque[tuple[str, list[Dependency]]] = deque()
        self._asked = 0

    def add_main(self, chain: Chain) -> None:
        """Add the chain of this page, one node for each job."""
        jobs = chain.jobs[-graph.MAX_NODES // 2 :]
        self.cut = len(jobs) < len(chain.jobs)
        before: str | None = None
        for job in jobs:
            note = _took(job, self.view)
            self._add(
                job.id, job.task, str(job.state), self.view.link(f"/jobs/{job.id}"), note, job.id == self.here, True
            )
            if before is not None:
                self.edges.append(graph.Edge(before, job.id, "chain"))
            before = job.id
            self._dependencies_of(job)

    def add_dependents(self, chain: Chain) -> None:
        """Add the jobs that wait for the end of the chain."""
        waiting = self.view.client.dependents(chain.last, limit=MAX_CHAINS_READ)
        self.cut = self.cut or len(waiting) == MAX_CHAINS_READ
        for job in waiting:
            if job.id not in self._known:
                self._add(job.id, job.task, str(job.state), self.view.link(f"/jobs/{job.id}"), _took(job, self.view))
            self.edges.append(graph.Edge(chain.last.id, job.id, "waits"))

    def follow(self) -> None:
        """Add the dependencies of all nodes, recursively, as far as the limits allow."""
        while self._open:
            id, dependencies = self._open.popleft()
            for dependency in dependencies:
                if dependency.chain not in self._known and not self._unfold(dependency):
                    self.cut = True
                    continue
                self.edges.append(graph.Edge(dependency.chain, id, "waits"))

    def in_words(self) -> list[tuple[str, str, str, str, str]]:
        """The edges as text, for users who cannot see the drawing: name, URL, relation, other name, other URL."""
        by_id = {node.id: node for node in self.nodes}
        relations = {"chain": "is continued by", "waits": "is waited for by"}
        return [
            (
                by_id[one.before].name,
                by_id[one.before].href,
                relations[one.kind],
                by_id[one.after].name,
                by_id[one.after].href,
            )
            for one in self.edges
            if one.before in by_id and one.after in by_id
        ]

    def _unfold(self, dependency: Dependency) -> bool:
        """Add the chain of a dependency as one node, and queue its dependencies. False if the drawing is full."""
        if len(self.nodes) >= graph.MAX_NODES:
            return False
        href = self.view.link(f"/chains/{dependency.chain}")
        found = self._find_chain(dependency.chain)
        if found is None:
            task, state = dependency.task or "gone", dependency.state or "pending"
            self._add(dependency.chain, task, state, href, "deleted or pruned")
            return True
        note = many(len(found), "job") if len(found) > 1 else _took(found[0], self.view)
        self._add(dependency.chain, found[0].task, str(found.state), href, note)
        for job in found.jobs:
            self._dependencies_of(job, dependency.chain)
        return True

    def _find_chain(self, chain: str) -> Chain | None:
        if self._asked >= MAX_CHAINS_READ:
            self.cut = True
            return None
        self._asked += 1
        try:
            return self.view.client.chain(chain)
        except JobNotFound:
            return None

    def _dependencies_of(self, job: Job[Any], node: str | None = None) -> None:
        if self._asked >= MAX_CHAINS_READ:
            self.cut = True
            return
        self._asked += 1
        dependencies = self.view.client.dependencies(job)
        if dependencies:
            self._open.append((node or job.id, dependencies))

    def _add(
        self, id: str, name: str, state: str, href: str, note: str, here: bool = False, main: bool = False
    ) -> None:
        self._known.add(id)
        self.nodes.append(graph.Node(id, name, state, href, note, main=main, here=here))


def _took(job: Job[Any], view: PageContext) -> str:
    """How long a job ran, or has been running; else its id."""
    if job.started_at and job.finished_at:
        return duration((job.finished_at - job.started_at).total_seconds())
    if job.started_at and job.state is State.RUNNING:
        return f"for {about((view.now - job.started_at).total_seconds())}"
    return f"\u2026{job.id[-8:]}"
