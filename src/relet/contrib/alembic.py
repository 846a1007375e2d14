"""Filters for Alembic's autogenerate, which would drop tables that the metadata of the program does not name.

In `env.py`:

    from relet.contrib.alembic import include_name, include_object

    context.configure(..., include_name=include_name, include_object=include_object)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["include_name", "include_object", "name_filter", "object_filter"]

NameFilter = Callable[[str | None, str, Mapping[Any, str | None]], bool]
ObjectFilter = Callable[[Any, str | None, str, bool, Any], bool]


def name_filter(schema: str = "relet") -> NameFilter:
    """`include_name` for an app with this schema: on PostgreSQL, leaves out the schemas of the app and its tenants."""

    def include(name: str | None, kind: str, parents: Mapping[Any, str | None]) -> bool:
        return kind != "schema" or name is None or not _is_ours(name, schema)

    return include


def object_filter(schema: str = "relet") -> ObjectFilter:
    """`include_object` for an app with this schema: leaves out its tables, unless the program's metadata names them.

    In a SQLite file their names begin with the schema and an underscore. On PostgreSQL they are in the schemas of the
    app and its tenants. A filter does not learn which of the two it filters, so both conditions hold for both.
    """

    def include(item: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
        if kind != "table" or not reflected or compare_to is not None or name is None:
            return True
        if item.schema is not None:
            return not _is_ours(item.schema, schema)
        return not name.startswith(f"{schema}_")

    return include


def _is_ours(name: str, schema: str) -> bool:
    return name == schema or name.startswith(f"{schema}_")  # that of a tenant


include_name = name_filter()
include_object = object_filter()
