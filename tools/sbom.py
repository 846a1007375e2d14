"""A software bill of materials, as CycloneDX 1.6 in JSON, of one distribution and those that it depends on.

It is read from the metadata of an environment into which the distribution is installed. Every distribution there
except the root is a component, so the environment must hold nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

Installed = dict[NormalizedName, Distribution]


def sbom(root: str, extras: list[str], packages: Path) -> dict[str, Any]:
    """The document for `root[extras]`, installed in the site-packages folder `packages`."""
    installed: Installed = {canonicalize_name(found.name): found for found in distributions(path=[str(packages)])}
    name = canonicalize_name(root)
    components = [_component(installed[other]) for other in sorted(installed) if other != name]
    dependencies = []
    for dependent, required in sorted(_dependencies(installed, name, extras).items()):
        purls = sorted(_purl(installed[one]) for one in required)
        dependencies.append({"ref": _purl(installed[dependent]), "dependsOn": purls})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "component": _component(installed[name]),
        },
        "components": components,
        "dependencies": dependencies,
    }


def _purl(found: Distribution) -> str:
    return f"pkg:pypi/{canonicalize_name(found.name)}@{found.version}"


def _component(found: Distribution) -> dict[str, Any]:
    purl = _purl(found)
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": found.name,
        "version": found.version,
        "purl": purl,
    }
    if licences := _licences(found):
        component["licenses"] = licences
    return component


def _licences(found: Distribution) -> list[dict[str, Any]]:
    """An SPDX expression where the metadata has one, else the names of its classifiers, else the older field."""
    if expressions := found.metadata.get_all("License-Expression"):
        return [{"expression": expressions[0]}]
    classifiers = [text for text in found.metadata.get_all("Classifier", []) if text.startswith("License ::")]
    names = [text.rpartition(" :: ")[2] for text in classifiers] or found.metadata.get_all("License", [])
    # Some put the whole text of the licence into the older field.
    return [{"license": {"name": name}} for name in names if "\n" not in name]


def _dependencies(
    installed: Installed, root: NormalizedName, extras: Iterable[str]
) -> dict[NormalizedName, set[NormalizedName]]:
    """The distributions that each one requires, with the extras that its dependents ask for."""
    found: dict[NormalizedName, set[NormalizedName]] = {name: set() for name in installed}
    pending = [(root, frozenset(extras))]
    visited = set(pending)
    while pending:
        name, chosen = pending.pop()
        for requirement in _requirements(installed[name], chosen):
            required = canonicalize_name(requirement.name)
            if required not in installed:
                continue
            found[name].add(required)
            following = (required, frozenset(requirement.extras))
            if following not in visited:
                visited.add(following)
                pending.append(following)
    return found


def _requirements(found: Distribution, extras: Iterable[str]) -> Iterator[Requirement]:
    """The requirements that hold here with these extras."""
    for requirement in map(Requirement, found.requires or []):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ["", *extras]):
            yield requirement
