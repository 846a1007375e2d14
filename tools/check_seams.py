"""Check that the worker and the store take time, randomness and threads from `relet._system` alone.

A simulation replaces that module's `System`. Whatever goes past it would not be simulated. In the worker, only the
files in WAITING may wait: the steps of its loops return how long to wait, and `loop.py` does so.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "relet"
CHECKED = ("_store", "_worker")
#: Of these modules nothing may be imported.
MODULES = {"time", "random", "secrets", "uuid", "sched", "multiprocessing", "concurrent.futures"}
#: The attributes of other modules that tell the time, are random, make threads or let them wait.
ATTRIBUTES = {
    "threading": {"Thread", "Event", "Timer", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "os": {"urandom", "getrandom"},
}
#: A function of relet that does so too: `System.new_id` is the same.
RELET = {"new_id"}

WAITS = {"wait", "sleep", "join"}
#: The files of the worker that wait, and for what.
WAITING = {
    "_worker/loop.py": "the next step",
    "_worker/loop_threads.py": "the next step of a loop that shares threads",
    "_worker/reconnect.py": "the next try, while the store cannot be reached: no step could go on without it",
    "_worker/worker.py": "start, stop and close, in the thread of the worker",
    "_worker/drain.py": "the drain, in the same thread",
    "_worker/foreground.py": "until the outcome is stored, in the thread of the handler",
    "_worker/session.py": "the store at the start and loops at the end, in the thread of the worker",
    "_worker/tenants.py": "the first tenant at the start and loops at the end, in the thread of the worker",
    "_worker/reporter.py": "the deletion of the worker's row, in the thread of the worker",
    "_worker/executors.py": "the event loop, to which a task yields",
    "_worker/resources.py": "resources that are made and closed, in the thread of the worker and in their own",
    "_worker/processes.py": "child processes, in threads that have no other work",
    "_worker/supervisor.py": "worker processes",
    "_worker/signals.py": "the end of the thread that reads signals",
    "_worker/embedded.py": "the start and the end of the worker, in the program around it",
}


def problems(path: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines that go past the seam, and why."""
    annotations = {id(part) for one in ast.walk(tree) for part in _annotations(one)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, _past(name)) for name in _imported(node))
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, _past(name)) for name in _imported_from(node))
        elif isinstance(node, ast.Attribute) and id(node) not in annotations and _is_forbidden(node):
            yield node.lineno, _past(ast.unparse(node))
        elif isinstance(node, ast.Call) and path.startswith("_worker/") and path not in WAITING and _waits(node):
            yield node.lineno, f"{ast.unparse(node.func)} waits; a step returns the seconds to wait"


def _past(name: str) -> str:
    return f"{name} goes past relet._system"


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if isinstance(annotation, ast.AST):
            yield from ast.walk(annotation)


def _imported(node: ast.Import) -> list[str]:
    """The forbidden modules, and those whose attributes could not be recognised because of another name."""
    renamed = [alias.name for alias in node.names if alias.asname and alias.name in ATTRIBUTES]
    return renamed + [alias.name for alias in node.names if alias.name in MODULES]


def _imported_from(node: ast.ImportFrom) -> list[str]:
    names = [alias.name for alias in node.names]
    if node.level:
        return [name for name in names if name in RELET]
    if node.module in MODULES:
        return [node.module]
    return [f"{node.module}.{name}" for name in names if name in ATTRIBUTES.get(node.module or "", ())]


def _is_forbidden(node: ast.Attribute) -> bool:
    """Whether this is an attribute such as `threading.Thread` or `datetime.datetime.now`."""
    owner = ast.unparse(node.value).rpartition(".")[2]
    return node.attr in ATTRIBUTES.get(owner, ())


def _waits(node: ast.Call) -> bool:
    """Whether this calls a method such as `wait`. A string joins as well."""
    function = node.func
    return (
        isinstance(function, ast.Attribute) and function.attr in WAITS and not isinstance(function.value, ast.Constant)
    )


def main() -> int:
    found = 0
    for folder in CHECKED:
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            path = str(file.relative_to(PACKAGE))
            for line, problem in problems(path, ast.parse(file.read_text("utf-8"))):
                found += 1
                print(f"src/relet/{path}:{line}: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
