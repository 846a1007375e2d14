"""Check that no expression of relet has more than one comprehension, and no comprehension more than two loops.

An expression is all that a statement evaluates as one: the value of an assignment, the argument of a return, the
condition of an `if`. A comprehension inside another counts, and so does one beside another. A generator expression is a
comprehension, and so is one in a lambda or an f-string. A reader who meets two of them must take the expression apart
first: write it in steps, and give each a name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECKED = ("src", "tools")
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
MAX_LOOPS = 2


def problems(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines of the expressions that are too dense, and why."""
    for expression in _expressions(tree):
        found = [node for node in ast.walk(expression) if isinstance(node, COMPREHENSIONS)]
        if len(found) > 1:
            yield expression.lineno, f"{len(found)} comprehensions in one expression"
        for comprehension in found:
            if len(comprehension.generators) > MAX_LOOPS:
                yield comprehension.lineno, f"{len(comprehension.generators)} loops in one comprehension"


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that are not part of another one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        else:
            yield from _expressions(child)


def main() -> int:
    found = 0
    for folder in CHECKED:
        for file in sorted((ROOT / folder).rglob("*.py")):
            path = str(file.relative_to(ROOT))
            for line, problem in problems(ast.parse(file.read_text("utf-8"))):
                found += 1
                print(f"{path}:{line}: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
