"""Questions of the doctor's tests to an app."""

from __future__ import annotations

from typing import Any

from relet import App
from relet.types import Finding


def make_app(url: str, schema: str) -> App:
    app = App(url, schema=schema)

    @app.task
    def work(value: Any = None) -> Any:
        return value

    return app


def found(app: App, check: str) -> list[Finding]:
    return [finding for finding in app.client.doctor() if finding.check == check]


def bad(findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.level in ("warning", "error") or "could not be checked" in one.text]


def the(app: App, check: str, level: str) -> Finding:
    """The one finding of a check, which has advice."""
    (finding,) = found(app, check)
    assert finding.level == level, finding
    assert finding.advice or level == "ok"
    return finding
