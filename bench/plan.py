"""The parts of a run: rows of the report, and cells, each of which measures one system once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.lab import Lab

Figures = Mapping[str, Any]
# Figures by row. One cell may measure several systems: then `system` is among the figures.
Measured = Mapping[str, Figures | Sequence[Figures]]


@dataclass(frozen=True)
class Row:
    """A line of the report: one figure of several systems. `against`: the system that ratios refer to."""

    name: str
    title: str
    figure: str = "rate"
    unit: str = "jobs/s"
    less_is_better: bool = False
    against: str = "raw"
    details: tuple[str, ...] = ()  # further figures, shown behind the first
    note: str = "gives up"  # which remark on a system to show: `gives up` or `keeps`


@dataclass(frozen=True)
class Cell:
    """One measurement. `most`: so many repetitions at most, for those that take long to set up."""

    name: str
    system: str
    measure: Callable[[Lab], Measured]
    most: int = 1000


@dataclass(frozen=True)
class Plan:
    rows: tuple[Row, ...]
    cells: tuple[Cell, ...]
    repeat: int = 3

    def turns(self, repeat: int) -> Iterator[tuple[int, Cell]]:
        """Repetitions, and within each the cells of one name in turn, beginning with another system every time."""
        names = list(dict.fromkeys(cell.name for cell in self.cells))
        for turn in range(1, repeat + 1):
            for name in names:
                some = [cell for cell in self.cells if cell.name == name and turn <= cell.most]
                begin = (turn - 1) % len(some) if some else 0
                yield from ((turn, cell) for cell in some[begin:] + some[:begin])

    def only(self, systems: Sequence[str]) -> Plan:
        """The part that concerns these systems; all of it if none is named."""
        cells = tuple(cell for cell in self.cells if not systems or cell.system in systems)
        return Plan(self.rows, cells, self.repeat)


def join(plans: Sequence[Plan]) -> Plan:
    """One plan of several; a row or a cell that two of them share is there once."""
    rows = {row.name: row for plan in plans for row in plan.rows}
    cells = {(cell.name, cell.system): cell for plan in plans for cell in plan.cells}
    return Plan(tuple(rows.values()), tuple(cells.values()), max(plan.repeat for plan in plans))
