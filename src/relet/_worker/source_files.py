"""Notices changes of Python files, for `relet worker --reload`."""

from __future__ import annotations

import os
from collections.abc import Iterator

#: Directories that hold no code of the user's own, and may hold thousands of files.
SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


class SourceFiles:
    """The Python files below a directory, and when each was last changed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._changed_at = dict(self._read())

    def changed(self) -> list[str]:
        """The files that were changed, added or removed since the last call, by their paths from the directory."""
        before, self._changed_at = self._changed_at, dict(self._read())
        paths = before.keys() | self._changed_at.keys()
        found = [path for path in paths if before.get(path) != self._changed_at.get(path)]
        return sorted(os.path.relpath(path, self._folder) for path in found)

    def _read(self) -> Iterator[tuple[str, int]]:
        for folder, folders, files in os.walk(self._folder):
            folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED]
            for name in files:
                if name.endswith(".py"):
                    path = f"{folder}{os.sep}{name}"
                    try:
                        yield path, os.stat(path).st_mtime_ns
                    except OSError:  # it was removed just now
                        continue
