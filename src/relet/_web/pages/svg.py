"""Drawings as markup. Geometry is in attributes and colours are classes, as the pages allow no inline styles.

Drawings stretch: across, places are percentages; down, they are pixels. Text keeps its size on a phone.
"""

from __future__ import annotations

from markupsafe import Markup, escape

from .formatting import visible

Value = str | int | float | None


def element(name: str, /, *inside: Markup, **attributes: Value) -> Markup:
    """One element; `class_` and `view_box` are spelled as SVG has them, None is left out."""
    given = "".join(
        f' {_NAMES.get(key) or key.replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{''.join(inside)}</{name}>")  # noqa: S704  # every part is escaped above or markup


def text(said: str, /, **attributes: Value) -> Markup:
    """Words in a drawing."""
    return element("text", escape(visible(said)), **attributes)


def title(said: str) -> Markup:
    """What is shown when the pointer rests on the element around it."""
    return element("title", escape(visible(said)))


def percent(share: float) -> str:
    """A place across, from 0 to 1."""
    return f"{share * 100:.2f}%"


_NAMES = {"class_": "class", "view_box": "viewBox", "preserve": "preserveAspectRatio"}


def _text(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(escape(value))
