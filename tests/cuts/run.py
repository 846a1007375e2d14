"""Every message of every verb, cut in every way, with every rival: which outcomes no order of the two explains."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from relet._client import bulk
from relet._store import retry
from tests.cuts.cut_stores import CutStore, Kind, Plan
from tests.cuts.outcomes import Outcome, Reader, is_explained
from tests.cuts.verbs import OURS, THEIRS, Verb

TOKENS = {"our token": OURS, "their token": THEIRS}


@dataclass(frozen=True)
class Case:
    """One call, one rival, one cut."""

    verb: str
    rival: str
    message: int
    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.verb} / {self.rival} / {self.kind} message {self.message} ({' '.join(self.text.split())[:50]})"


@dataclass(frozen=True)
class Unexplained:
    """An outcome that no order of call and rival leads to."""

    case: Case
    orders: list[Outcome]
    found: Outcome
    known: str | None  # why that is so, where it is known

    def __str__(self) -> str:
        lines = [f"{self.case}: {self.known or 'WRONG'}"]
        if self.known:
            return lines[0]
        for order in self.orders:
            lines += ["  not as in an order of both:", *(f"    {one}" for one in order.differences(self.found))]
        return "\n".join(lines)


@contextmanager
def small_and_quick() -> Iterator[None]:
    """Bulk takes two jobs at a time; a try that failed is repeated at once."""
    at_once, pause = bulk.AT_ONCE, retry.backoff
    bulk.AT_ONCE, retry.backoff = 2, lambda failures, longest=1.0: 0.0
    try:
        yield
    finally:
        bulk.AT_ONCE, retry.backoff = at_once, pause


def check(cut_store: CutStore, verb: Verb, *, share: float = 1.0, seed: int = 0) -> tuple[int, list[Unexplained]]:
    """Run the cases of a verb, or a share of them, with one rival; how many, and those that have no explanation."""
    choice = random.Random(f"{seed} {verb.name}")
    rivals = list(verb.rivals) if share == 1 else [choice.choice(list(verb.rivals))]
    share *= len(verb.rivals) / len(rivals)
    number, wrong = 0, []
    with small_and_quick():
        plan, _ = _run(cut_store, verb, rivals[0])
        for rival in rivals:
            orders = Orders(cut_store, verb, rival, plan)
            for case in _cases(cut_store, verb, rival, plan):
                if choice.random() >= share:
                    continue
                found = _cut(cut_store, verb, case)
                if found is None:
                    continue
                number += 1
                explained = any(is_explained(found, order, later=verb.later) for order in orders)
                if not explained and not (verb.omits and _has_the_leases_of_its_answer(found)):
                    wrong.append(Unexplained(case, list(orders), found, verb.known.get(rival)))
    return number, wrong


def _cases(cut_store: CutStore, verb: Verb, rival: str, plan: Plan) -> list[Case]:
    return [
        Case(verb.name, rival, number, kind, text)
        for number, text in enumerate(plan.sent)
        for kind in cut_store.kinds
        if cut_store.can_be(text, kind)
    ]


class Orders:
    """The outcomes without a cut: the rival comes last, or first, or between two steps of the call."""

    def __init__(self, cut_store: CutStore, verb: Verb, rival: str, plan: Plan) -> None:
        between = plan.boundaries if verb.steps else plan.boundaries[:1]
        self._rest: Iterator[int | None] = iter([None, *between])
        self._run: Callable[[int | None], Outcome] = lambda at: _run(cut_store, verb, rival, rival_at=at)[1]
        self._found: list[Outcome] = []

    def __iter__(self) -> Iterator[Outcome]:
        """Those that are not asked for are not run."""
        yield from self._found
        for at in self._rest:
            self._found.append(self._run(at))
            yield self._found[-1]


def _cut(cut_store: CutStore, verb: Verb, case: Case) -> Outcome | None:
    """None: there was no such message, as pruning found less to do than the time before."""
    plan, outcome = _run(cut_store, verb, case.rival, cut=(case.message, case.kind))
    assert plan.was_cut or verb.steps, f"{case}: there was no such message"
    return outcome if plan.was_cut else None


def _run(cut_store: CutStore, verb: Verb, rival: str, **how: Any) -> tuple[Plan, Outcome]:
    plan = Plan(lambda: verb.rivals[rival](cut_store.theirs), **how)
    said = cut_store.run(verb, plan)
    return plan, Reader(cut_store.named, TOKENS).outcome(said, plan.rival_said, cut_store.tables())


def _has_the_leases_of_its_answer(found: Outcome) -> bool:
    """A claim: what it brings are the leases that it has."""
    held = sorted(
        row["id"] for row in found.store["jobs"] if row["token"] == "<our token>" and row["state"] == "running"
    )
    return isinstance(found.said, list) and sorted(id for id, *_ in found.said) == held
