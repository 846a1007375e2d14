"""The runbook has an entry for every alert and every check of doctor, and the alerts lead to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import relet
from tests.pages import DOCS

PAGE = DOCS / "guides" / "runbook.md"
HEADING = re.compile(r"^### `?(?P<name>\w+)`?$", re.M)
URL = "https://github.com/relet/relet/blob/main/docs/guides/runbook.md#"
PARTS = ("- **Meaning**: ", "- **Check**: ", "- **Do**: ")
DURATION = re.compile(r"(\d+(ms|[smhdwy]))+")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((DOCS / "grafana" / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def checks() -> set[str]:
    """The names of all checks: the first argument wherever the doctor makes a finding or a check."""
    files = (Path(relet.__file__).parent / "_store" / "doctor").glob("*.py")
    return {name for file in files for name in _checks_in(ast.parse(file.read_text()))}


def _checks_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Finding", "Check"):
            first = node.args[0]
            if isinstance(first, ast.Constant):
                yield str(first.value)


def entries() -> dict[str, str]:
    """The text of each entry, by its name."""
    _, *parts = HEADING.split(PAGE.read_text())
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_alert_and_every_check_has_an_entry_and_there_are_no_others() -> None:
    names = [found["name"] for found in HEADING.finditer(PAGE.read_text())]
    assert len(set(names)) == len(names)
    assert set(names) == {rule["alert"] for rule in rules()} | checks()


def test_the_doctor_guide_has_the_same_checks() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (DOCS / "guides" / "doctor.md").read_text(), re.M)
    assert set(rows) - {"ok", "info", "warning", "error"} == checks()


@pytest.mark.parametrize("name", entries())
def test_an_entry_has_all_parts(name: str) -> None:
    lines = entries()[name].splitlines()
    assert [part for line in lines for part in PARTS if line.startswith(part)] == list(PARTS)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_leads_to_its_entry_and_names_only_labels_that_it_has(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert DURATION.fullmatch(rule.get("for", "0s"))
    notes = rule["annotations"]
    assert notes.keys() == {"summary", "description", "runbook_url"}
    assert notes["runbook_url"] == URL + rule["alert"].lower()
    grouped = re.findall(r"\b(?:sum|max) by \(([^)]*)\)", rule["expr"])
    labels = {label.strip() for label in grouped[0].split(",")} if grouped else set()
    used = re.findall(r"\$labels\.(\w+)", notes["summary"] + notes["description"])
    assert set(used) <= labels, "of the outermost aggregation: Prometheus prints nothing for others"
