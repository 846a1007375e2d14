"""Pages for requests that were refused: the sign-in form and the error page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from .page import PageContext, environment, problem, render

#: Inline, because users who are not signed in get no static files. The content security policy allows it by its hash.
STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  --page: light-dark(#f7f7f5, #0f1115); --panel: light-dark(#fff, #16191f); --line: light-dark(#e3e4e0, #272b34);
  --edge: light-dark(#8a8f98, #5a6270); --text: light-dark(#1b1e24, #e4e7ec); --quiet: light-dark(#5a606b, #98a0ae);
  --accent: light-dark(#2357c5, #86aeff); --on: light-dark(#fff, #0d1526); --bad: light-dark(#b2330d, #ff8a66) }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--page); color: var(--text) }
main { width: min(23rem, 92vw); padding: 28px; background: var(--panel); border: 1px solid var(--line);
  border-radius: 12px }
h1 { font-size: 19px; letter-spacing: -.02em; margin: 0 0 18px; display: flex; align-items: center; gap: 10px }
svg { fill: none; stroke-width: 3.5; stroke-linecap: round }
.ring { stroke: var(--accent) } .hand { stroke: var(--line) } .job { fill: var(--accent) }
label { display: block; font-size: 13px; color: var(--quiet); margin-bottom: 4px }
input, button { font: inherit; width: 100%; padding: 8px 12px; border-radius: 7px }
input { border: 1px solid var(--edge); background: var(--panel); color: var(--text) }
button { margin-top: 12px; border: 0; background: var(--accent); color: var(--on); font-weight: 600; cursor: pointer }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
p { margin: 14px 0 0; color: var(--quiet); font-size: 13px }
p[role=alert] { color: var(--bad) }
"""


def sign_in(root: str, to: str, failed: str = "") -> str:
    """The sign-in page. `to` is the path to return to afterwards."""
    return environment().get_template("sign_in.html").render(root=root, to=to, failed=failed, style=STYLE)


def refused(root: str, title: str, message: str, status: int) -> str:
    """A page that says why a request was refused. Makes no query: the database may be unreachable."""
    view = PageContext(cast(Any, None), {}, "read", "", root, "", str, datetime.now(UTC), here="")
    return render(problem(title, message, status), view)
