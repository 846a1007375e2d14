"""SVG elements as markup. Geometry is in attributes and colours are classes, because our pages allow no inline styles.

Drawings stretch: x coordinates are percentages, y coordinates are pixels. Text keeps its size on a phone.
"""

from __future__ import annotations

from markupsafe import Markup, escape

from .formatting import visible

Value = str | int | float | None


def element(name: str, /, *inside: Markup, **attributes: Value) -> Markup:
    """One element. `class_` and `view_box` become `class` and `viewBox`; attributes that are None are left out."""
    attribute_text = "".join(
        f' {_NAMES.get(key) or key.replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{attribute_text}>{''.join(inside)}</{name}>")  # noqa: S704  # every part is markup or was escaped above


def text(content: str, /, **attributes: Value) -> Markup:
    """A text element."""
    return element("text", escape(visible(content)), **attributes)


def title(content: str) -> Markup:
    """The tooltip of the surrounding element."""
    return element("title", escape(visible(content)))


def percent(share: float) -> str:
    """An x coordinate from 0 to 1 as a percentage."""
    return f"{share * 100:.2f}%"


_NAMES = {"class_": "class", "view_box": "viewBox", "preserve": "preserveAspectRatio"}


def _text(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(escape(value))
