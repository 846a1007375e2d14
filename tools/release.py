"""Prepare a release in dist/: `./dev release`. Nothing is tagged, and nothing leaves the machine.

1. The version and the changelog agree.
2. The sdist and the wheel are built.
3. The wheel installs with each extra (tools/check_install.py).
4. The sdist passes a part of the tests that it holds.
5. An SBOM of the wheel with all extras is written beside them.

docs/releasing.md says what comes before and after.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from packaging.version import Version

from relet import __version__

from .check_install import check, check_each, extras
from .distribution import ROOT, build, run, unpack
from .sbom import sbom

DIST = ROOT / "dist"
#: Tests of the sdist: small ones that need files beside the package. All others are collected at least.
SDIST_TESTS = ("tests/core", "tests/tasks", "tests/test_check_sql.py", "tests/test_packaging.py")

_HEADING = re.compile(r"^## \[([^\]]+)\](?: - (\S+))?$", re.MULTILINE)


def changelog_problems(changelog: str, version: str, *, dry_run: bool) -> list[str]:
    """Where the changelog contradicts the version. In a dry run the changes may still be called unreleased."""
    _, *parts = _HEADING.split(changelog)
    sections = dict(zip(parts[0::3], parts[2::3], strict=True))
    dates = dict(zip(parts[0::3], parts[1::3], strict=True))
    unreleased = sections.pop("Unreleased", "").strip()
    problems = [f"version {name} has no date" for name in sections if not _is_date(dates[name])]
    problems += [
        f"the changelog has version {name}, the package is {version}"
        for name in sections
        if Version(name) > Version(version)
    ]
    if version in sections and unreleased:
        problems.append(f"the changelog has unreleased changes beside version {version}")
    elif version not in sections and not (dry_run and unreleased):
        problems.append(f"the changelog has no version {version}")
    return problems


def _is_date(text: str | None) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text or "") is not None


def repository_problems(version: str) -> list[str]:
    """Reasons not to release this very checkout."""
    problems = []
    if _git("status", "--porcelain"):
        problems.append("there are changes that are not committed")
    if _git("tag", "--list", f"v{version}"):
        problems.append(f"the tag v{version} exists already")
    return problems


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def check_sdist(sdist: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="relet-sdist-") as folder:
        tree = unpack(sdist, Path(folder))
        run("./dev", "test", "-q", "--collect-only", "-qq", cwd=tree)
        run("./dev", "test", "-q", *SDIST_TESTS, cwd=tree)


def write_sbom(wheel: Path) -> Path:
    with tempfile.TemporaryDirectory(prefix="relet-sbom-") as folder:
        environment = check(wheel, extras(wheel), Path(folder) / "venv")
        document = sbom("relet", extras(wheel), environment.packages)
    file = wheel.parent / f"relet-{__version__}.cdx.json"
    file.write_text(json.dumps(document, indent=1) + "\n")
    return file


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev release", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="accept unreleased and uncommitted changes",
    )
    dry_run = parser.parse_args().dry_run
    problems = changelog_problems((ROOT / "CHANGELOG.md").read_text(), __version__, dry_run=dry_run)
    if not dry_run:
        problems += repository_problems(__version__)
    if problems:
        raise SystemExit("\n".join(f"release: {problem}" for problem in problems))
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    sdist, wheel = build(DIST)
    check_each(wheel)
    files = [sdist, wheel, write_sbom(wheel)]
    check_sdist(sdist)
    print(f"\nrelet {__version__} is ready:", *(f"  {file.relative_to(ROOT)}" for file in files), sep="\n")
    print("This was a dry run." if dry_run else "docs/releasing.md says how to publish it.")


if __name__ == "__main__":
    main()
