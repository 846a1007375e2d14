"""Check that the worker and the store take time, randomness and threads from `relet._system` alone.

A simulation replaces that module's `System`. Whatever goes past it would not be simulated.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "relet"
CHECKED = ("_store", "_worker")
#: Of these modules nothing may be imported; of threading, what makes threads or lets them wait.
MODULES = {"time", "random", "secrets", "uuid"}
OF_THREADING = {"Thread", "Event", "Timer", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"}
#: A worker's id is chosen before there is anything to simulate.
ALLOWED = {("_worker/worker.py", "secrets")}


def problems(path: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines that go past the seam."""
    annotations = {id(part) for one in ast.walk(tree) for part in _annotations(one)}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name in MODULES]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            if node.module in MODULES:
                names = [str(node.module)]
            elif node.module == "threading":
                names = [f"threading.{alias.name}" for alias in node.names if alias.name in OF_THREADING]
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "threading"
            and node.attr in OF_THREADING
            and id(node) not in annotations
        ):
            names = [f"threading.{node.attr}"]
        yield from ((getattr(node, "lineno", 0), name) for name in names if (path, name) not in ALLOWED)


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if isinstance(annotation, ast.AST):
            yield from ast.walk(annotation)


def main() -> int:
    found = 0
    for folder in CHECKED:
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            path = str(file.relative_to(PACKAGE))
            for line, name in problems(path, ast.parse(file.read_text("utf-8"))):
                found += 1
                print(f"src/relet/{path}:{line}: {name} goes past relet._system")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
