"""The variants of a schema in PostgreSQL.

`postgres`: with partitions, notifications and SQL functions. `rows`: for engines that spread a schema over machines.
"""

from __future__ import annotations

from typing import Literal

Variant = Literal["postgres", "rows"]
