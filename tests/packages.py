"""Copies of the package of which tests change a few files.

Only changed files are copied, with their folders. The rest are links, so that Python finds them compiled.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path, PurePath

import relet


def copy_package(folder: Path, changed: Collection[str]) -> Path:
    """A copy in this folder. The named files, which need not exist, may be written there, and no others."""
    package = folder / "relet"
    folder.mkdir(exist_ok=True)
    _copy(Path(relet.__file__).parent, package, [PurePath(name).parts for name in changed])
    return package


def _copy(source: Path, target: Path, changed: list[tuple[str, ...]]) -> None:
    target.mkdir()
    for entry in source.iterdir():
        inside = [rest for first, *rest in changed if first == entry.name]
        if entry.name == "__pycache__":
            shutil.copytree(entry, target / entry.name)
        elif not inside:
            (target / entry.name).symlink_to(entry)
        elif entry.is_dir():
            _copy(entry, target / entry.name, [tuple(rest) for rest in inside])
        else:
            shutil.copy2(entry, target / entry.name)
