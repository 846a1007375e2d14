"""The distribution: its page on PyPI, the files of the sdist, and the checks of a release."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

import relet
from tools.check_install import MODULES
from tools.release import SDIST_TESTS, changelog_problems
from tools.sbom import sbom

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^)]*)\)|(?:src|href)=[\"']([^\"']*)")
MEBIBYTE = 1 << 20
FOLDERS = {"bench", "docs", "examples", "src", "tests", "tools"}
FILES = {
    *(".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md"),
    *("constraints.txt", "dev", "mkdocs.yml", "pyproject.toml"),
}


def hatchling(*arguments: str) -> str:
    command = [sys.executable, "-m", "hatchling", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def metadata() -> dict[str, Any]:
    """The metadata that a build would write now."""
    document: dict[str, Any] = json.loads(hatchling("metadata"))
    return document


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> list[tarfile.TarInfo]:
    """The files of a new sdist, without the folder that all of them are in."""
    folder = tmp_path_factory.mktemp("dist")
    hatchling("build", "--target", "sdist", "--directory", str(folder))
    with tarfile.open(folder / f"relet-{relet.__version__}.tar.gz") as archive:
        members = archive.getmembers()
    for member in members:
        member.name = member.name.partition("/")[2]
    return members


def test_every_link_on_the_page_at_pypi_is_absolute(metadata: dict[str, Any]) -> None:
    targets = [match[1] or match[2] for match in LINK.finditer(metadata["readme"]["text"])]
    assert len(targets) > 30
    assert [target for target in targets if not target.startswith("https://")] == []


def test_links_to_files_lead_to_the_tag_of_the_version(metadata: dict[str, Any]) -> None:
    text, tag = metadata["readme"]["text"], f"v{relet.__version__}"
    assert f"](https://raw.githubusercontent.com/relet/relet/{tag}/docs/images/overview-light.png)" in text
    assert f"](https://github.com/relet/relet/blob/{tag}/docs/guarantees.md#ownership)" in text
    assert "$HFPR" not in text


def test_the_version_of_the_metadata_is_that_of_the_package(metadata: dict[str, Any]) -> None:
    assert metadata["version"] == relet.__version__


def test_the_install_check_knows_every_extra(metadata: dict[str, Any]) -> None:
    assert set(metadata["optional-dependencies"]) - {"dev", "docs"} == set(MODULES)


def test_the_page_on_compatibility_names_the_versions_of_python(metadata: dict[str, Any]) -> None:
    prefix = "Programming Language :: Python :: 3."
    versions = [f"3.{text.removeprefix(prefix)}" for text in metadata["classifiers"] if text.startswith(prefix)]
    assert f"| Python | {', '.join(versions)} |" in (ROOT / "docs" / "compatibility.md").read_text()


def test_the_sdist_has_the_files_that_its_tests_need(sdist: list[tarfile.TarInfo]) -> None:
    names = {member.name for member in sdist}
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    files = {str(path.relative_to(ROOT)) for path in paths if path.is_file() and "__pycache__" not in path.parts}
    assert (files | FILES) - names == set()
    assert [test for test in SDIST_TESTS if not (ROOT / test).exists()] == []
    (dev,) = (member for member in sdist if member.name == "dev")
    assert dev.mode & 0o111


def test_the_sdist_holds_nothing_else(sdist: list[tarfile.TarInfo]) -> None:
    assert {member.name.partition("/")[0] for member in sdist} == FOLDERS | FILES
    assert [member.name for member in sdist if "__pycache__" in member.name or member.size > MEBIBYTE] == []
    assert sum(member.size for member in sdist) < 12 * MEBIBYTE


UNRELEASED = "## [Unreleased]\n\n- A change.\n"
RELEASED = "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n- A change.\n\n## [0.1.0] - 2026-11-01\n\n- All.\n"


@pytest.mark.parametrize(
    ("changelog", "version", "dry_run", "problems"),
    [
        (RELEASED, "0.2.0", False, []),
        (RELEASED, "0.2.0", True, []),
        (UNRELEASED, "0.1.0", True, []),
        (UNRELEASED, "0.1.0", False, ["the changelog has no version 0.1.0"]),
        ("## [Unreleased]\n", "0.1.0", True, ["the changelog has no version 0.1.0"]),
        (RELEASED, "0.3.0", True, ["the changelog has no version 0.3.0"]),
        (RELEASED, "0.1.0", False, ["the changelog has version 0.2.0, the package is 0.1.0"]),
        (UNRELEASED + RELEASED[16:], "0.2.0", False, ["the changelog has unreleased changes beside version 0.2.0"]),
        ("## [0.1.0]\n\n- All.\n", "0.1.0", False, ["version 0.1.0 has no date"]),
    ],
)
def test_a_release_compares_the_changelog_with_the_version(
    changelog: str, version: str, dry_run: bool, problems: list[str]
) -> None:
    assert changelog_problems(changelog, version, dry_run=dry_run) == problems


def test_the_changelog_agrees_with_the_version_now() -> None:
    assert changelog_problems((ROOT / "CHANGELOG.md").read_text(), relet.__version__, dry_run=True) == []


def install(packages: Path, name: str, version: str, *fields: str) -> None:
    """Put the metadata of a distribution there."""
    folder = packages / f"{name}-{version}.dist-info"
    folder.mkdir()
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *fields]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")
    assert Distribution.at(folder).version == version


def test_the_sbom_lists_installed_packages_with_licences_and_dependencies(tmp_path: Path) -> None:
    requires = ["needed[fast]>=1", 'Extra_One; extra == "web"', 'absent; extra == "cli"', 'windows; os_name == "nt"']
    install(tmp_path, "relet", "1.0", "License-Expression: Apache-2.0", *(f"Requires-Dist: {one}" for one in requires))
    licence = "Classifier: License :: OSI Approved :: MIT License"
    install(tmp_path, "needed", "1.2", licence, 'Requires-Dist: speedups; extra == "fast"')
    install(tmp_path, "Extra_One", "3.0", "Requires-Dist: needed")
    install(tmp_path, "speedups", "0.1", "License: BSD-3-Clause")

    document = sbom("relet", ["web"], tmp_path)

    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    root = document["metadata"]["component"]
    assert (root["purl"], root["licenses"]) == ("pkg:pypi/relet@1.0", [{"expression": "Apache-2.0"}])
    assert [(one["name"], one["version"], one.get("licenses")) for one in document["components"]] == [
        ("Extra_One", "3.0", None),
        ("needed", "1.2", [{"license": {"name": "MIT License"}}]),
        ("speedups", "0.1", [{"license": {"name": "BSD-3-Clause"}}]),
    ]
    assert document["dependencies"] == [
        {"ref": "pkg:pypi/extra-one@3.0", "dependsOn": ["pkg:pypi/needed@1.2"]},
        {"ref": "pkg:pypi/needed@1.2", "dependsOn": ["pkg:pypi/speedups@0.1"]},
        {"ref": "pkg:pypi/relet@1.0", "dependsOn": ["pkg:pypi/extra-one@3.0", "pkg:pypi/needed@1.2"]},
        {"ref": "pkg:pypi/speedups@0.1", "dependsOn": []},
    ]


@pytest.mark.skipif(not (ROOT / ".pre-commit-config.yaml").exists(), reason="an sdist has no hooks")
def test_the_hooks_run_every_check() -> None:
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    entries = [hook["entry"] for repository in document["repos"] for hook in repository["hooks"]]
    assert {repository["repo"] for repository in document["repos"]} == {"local"}
    listed = subprocess.run(["./dev", "check", "--list"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert sorted(entries) == sorted(f"./dev check {name}" for name in listed.split())
    assert os.access(ROOT / "dev", os.X_OK)
