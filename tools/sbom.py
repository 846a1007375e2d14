"""A software bill of materials, as CycloneDX 1.6 in JSON, of one distribution and those that it depends on.

It is read from the metadata of an environment into which the distribution is installed. Every distribution there
except the root is a component, so the environment must hold nothing else.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name


def sbom(root: str, extras: list[str], packages: Path) -> dict[str, Any]:
    """The document for `root[extras]`, installed in the site-packages folder `packages`."""
    installed = {canonicalize_name(found.name): found for found in distributions(path=[str(packages)])}
    references = {name: _purl(found) for name, found in installed.items()}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "component": _component(installed[canonicalize_name(root)]),
        },
        "components": [_component(installed[name]) for name in sorted(installed) if name != root],
        "dependencies": [
            {
                "ref": references[name],
                "dependsOn": sorted(
                    references[required]
                    for required in _required(installed[name], extras if name == root else [])
                    if required in references
                ),
            }
            for name in sorted(installed)
        ],
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
    """An SPDX expression where the metadata has one, else the names of its classifiers."""
    if expressions := found.metadata.get_all("License-Expression"):
        return [{"expression": expressions[0]}]
    classifiers = [text for text in found.metadata.get_all("Classifier", []) if text.startswith("License ::")]
    return [{"license": {"name": text.rpartition(" :: ")[2]}} for text in classifiers]


def _required(found: Distribution, extras: list[str]) -> set[NormalizedName]:
    """Names of the distributions that this one requires here, with these extras."""
    requirements = [Requirement(text) for text in found.requires or []]
    return {
        canonicalize_name(requirement.name)
        for requirement in requirements
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in ["", *extras])
    }
