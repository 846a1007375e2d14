"""Writes the transition table and the state diagram of concepts.md from `core.machine.TRANSITIONS`.

python docs/make_concepts.py            write them
python docs/make_concepts.py --check    say whether they are up to date, by the exit code
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from relet._core.job import State
from relet._core.machine import TRANSITIONS, Transition

PAGE = Path(__file__).parent / "concepts.md"
ASKED = {State.CANCELLED, State.PAUSED}
ORDER = list(State)
#: Verbs that lead from nearly every state to one end: with their arrows the diagram could not be read.
LEFT_OUT = {"cancel", "complete", "delete"}


def listed(states: Iterator[State] | frozenset[State] | set[State]) -> str:
    return ", ".join(f"`{state}`" for state in sorted(states, key=ORDER.index))


def honours_requests(verb: str, transition: Transition) -> bool:
    """Whether cancelled and paused are where a request leads, not what the verb is for."""
    return verb not in ("cancel", "pause") and transition.targets >= ASKED


def targets(verb: str, transition: Transition) -> str:
    if honours_requests(verb, transition):
        return f"{listed(transition.targets - ASKED)}; if asked {listed(ASKED)}"
    return listed(transition.targets)


def table() -> str:
    rows = ["| verb | from | to | who | |", "|---|---|---|---|---|"]
    for verb, transition in TRANSITIONS.items():
        sources = "any" if transition.sources == set(State) else listed(transition.sources)
        rows.append(f"| {verb} | {sources} | {targets(verb, transition)} | {transition.who} | {transition.remark} |")
    return "\n".join(rows)


def edges() -> Iterator[tuple[State, State, str]]:
    """From, to, label. `pause` does not move a running job: it asks, and the end of the attempt honours it."""
    for verb, transition in TRANSITIONS.items():
        if verb in LEFT_OUT:
            continue
        for source in transition.sources:
            for end in transition.targets - {source}:
                if verb == "replace" and (source, end) != (State.QUEUED, State.PENDING):
                    continue  # it leaves a job in its state, or puts it off
                if verb == "pause" and State.RUNNING in (source, end):
                    continue
                asked = honours_requests(verb, transition) and end in ASKED
                yield source, end, "if asked" if asked else verb


def diagram() -> str:
    labels: dict[tuple[State, State], list[str]] = {}
    for source, end, label in edges():
        verbs = labels.setdefault((source, end), [])
        if label not in verbs:
            verbs.append(label)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {end}: enqueue" for end in sorted(TRANSITIONS["enqueue"].targets, key=ORDER.index)]
    for (source, end), verbs in sorted(labels.items(), key=lambda edge: [ORDER.index(state) for state in edge[0]]):
        lines.append(f"    {source} --> {end}: {', '.join(verbs)}")
    lines += [f"    {state} --> [*]" for state in ORDER if state.over]
    return "\n".join([*lines, "```"])


def written(page: str) -> str:
    """The page with its generated parts as the code has them now."""
    for name, text in (("table", table()), ("diagram", diagram())):
        part = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.S)
        page, count = part.subn(lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page)
        if count != 1:
            raise SystemExit(f"{PAGE.name} has {count} places for the {name}, not one")
    return page


def main(arguments: list[str]) -> int:
    page = PAGE.read_text()
    if arguments == ["--check"]:
        return int(written(page) != page)
    PAGE.write_text(written(page))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
