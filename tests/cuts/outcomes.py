"""What came of a call and of its rival: what each was told, and every row of the store, in words that can be compared.

Ids are replaced by names, and moments by how far they lie ahead in steps of ten minutes.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from relet import Job
from relet._core.schedule import ScheduleInfo
from relet._core.tokens import claim_of

Row = dict[str, Any]
Tables = dict[str, list[Row]]

ORDERED = {"jobs": "seq", "audit": "seq", "nudges": "id"}
NOT_COMPARED = {"audit": {"id", "seq"}, "nudges": {"id"}, "operations": {"id", "outcome"}, "jobs": {"seq"}}
CONTENT = ("payload", "result", "error", "progress", "context")

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MOMENT = re.compile(r"\b1[0-9]{9}(\.[0-9]+)?\b|\b20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+\+[0-9:]+")
_PAYLOAD = re.compile(r'"payload":("(?:[^"\\]|\\.)*")')
_STEP = 600.0


@dataclass(frozen=True)
class Outcome:
    """The answers to the call and to the rival, and the rows of the store."""

    said: Any
    rival: Any
    store: Any

    def differences(self, other: Outcome) -> list[str]:
        """Where another outcome differs from this one, for people."""
        return [*_differences("said", self.said, other.said), *_differences("rival", self.rival, other.rival)] + [
            line for table, rows in self.store.items() for line in _differences(table, rows, other.store[table])
        ]


def _differences(where: str, one: Any, other: Any) -> list[str]:
    if one == other:
        return []
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [line for key in one for line in _differences(f"{where}.{key}", one[key], other[key])]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for n, (left, right) in pairs for line in _differences(f"{where}[{n}]", left, right)]
    return [f"{where}: {other} in place of {one}"]


class Reader:
    """Turns answers and rows into words. `named`: the jobs of the set-up. A token gets the name of its claim, which all
    tries of the claim share."""

    def __init__(self, named: Mapping[str, str], tokens: Mapping[str, str]) -> None:
        self._names = {id: name for name, id in named.items()}
        self._claims = {claim_of(token): name for name, token in tokens.items()}
        self._now = time.time()

    def outcome(self, said: Any, rival: Any, tables: Tables) -> Outcome:
        for row in [*tables["jobs"], *tables["finished"]]:
            self._names.setdefault(row["id"], f"new {self._plain(row['payload'])}")
        return Outcome(self._plain(said), self._plain(rival), {table: self._rows(table, tables) for table in tables})

    def _rows(self, table: str, tables: Tables) -> list[Any]:
        found = tables[table]
        left_out = NOT_COMPARED.get(table, set())
        if table in ORDERED:
            found = sorted(found, key=lambda row: row[ORDERED[table]])
        rows = [{name: self._plain(value) for name, value in row.items() if name not in left_out} for row in found]
        for row in rows:
            if table == "operations" and row["verb"].startswith("bulk"):
                row["subject"] = ""  # the first of several ids, which may be of the same millisecond, in any order
        return rows if table in ORDERED else sorted(rows, key=str)

    def _plain(self, value: Any) -> Any:
        match value:
            case bool() | None:
                return value
            case str() if not isinstance(value, Enum):
                return _MOMENT.sub(self._moment, _ID.sub(self._name, value))
            case Enum():
                return str(value.value)
            case datetime():
                return self._ahead(value.timestamp())
            case float() | int():
                return self._ahead(value) if value > 1e9 else value
            case BaseException():
                return f"{type(value).__name__}: {self._plain(str(value))}"
            case msgspec.Struct():
                named = {name.removesuffix("_json"): one for name, one in msgspec.structs.asdict(value).items()}
                return {"is": type(value).__name__, **self._plain(named)}
            case dict():
                return {self._plain(key): self._plain(one) for key, one in value.items()}
            case list() | tuple() | set() | frozenset():
                return [self._plain(one) for one in value]
        if dataclasses.is_dataclass(value):
            return self._plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
        return self._plain(str(value))

    def _name(self, found: re.Match[str]) -> str:
        return f"<{self._names.get(found[0]) or self._claims.get(claim_of(found[0]), '?')}>"

    def _moment(self, found: re.Match[str]) -> str:
        text = found[0]
        return self._ahead(datetime.fromisoformat(text).timestamp() if "T" in text else float(text))

    def _ahead(self, moment: float) -> str:
        return f"{round((moment - self._now) / _STEP)}0 min"


def is_explained(found: Outcome, order: Outcome, *, later: bool = False) -> bool:
    """Whether what was found is what one order of call and rival leads to.

    The answer of a call that is recognised when it is repeated has no stored payload and result: those are the job's as
    it is now, if it is still there. With `later`, all that is said of a job may be true of it now.
    """
    if found.rival != order.rival or not _holds(found.store, order.store):
        return False
    now = {row["id"]: row for row in [*found.store["jobs"], *found.store["finished"]]}
    schedules = {row["name"]: row for row in found.store["schedules"]}
    return _is_same(found.said, order.said, now, schedules, later)


def _holds(found: Tables, order: Tables) -> bool:
    """Whether there are the same rows. A note for promote may be there in vain, where an enqueue was repeated."""
    rest = [{name: rows for name, rows in store.items() if name != "nudges"} for store in (found, order)]
    nudges = [Counter(map(str, store["nudges"])) for store in (found, order)]
    return rest[0] == rest[1] and nudges[0] >= nudges[1]


def _is_same(said: Any, expected: Any, now: dict[str, Row], schedules: dict[str, Row], later: bool) -> bool:
    if said == expected:
        return True
    if later and isinstance(said, list) and said and isinstance(said[0], str) and said[0] in now:  # of a settle
        row = now[said[0]]
        return bool(row["token"] == "<our token>" and said[1] == row["state"])
    if isinstance(said, list) and isinstance(expected, list) and len(said) == len(expected):
        return all(_is_same(one, other, now, schedules, later) for one, other in zip(said, expected, strict=True))
    if not (isinstance(said, dict) and isinstance(expected, dict) and said.get("is") == expected.get("is")):
        return False
    if said.get("is") == Job.__name__:
        return _is_same_job(said, expected, now.get(said["id"]), later)
    if said.get("is") == ScheduleInfo.__name__:
        schedule = schedules.get(said["name"])
        contents = [expected["payload"], "null" if schedule is None else _payload_of(schedule)]
        return said["payload"] in contents and {**said, "payload": ""} == {**expected, "payload": ""}
    return False


def _is_same_job(said: Row, expected: Row, row: Row | None, later: bool) -> bool:
    if said["id"] != expected["id"] or said["existing"] != expected["existing"]:
        return False
    if later and row is not None and (said["state"], said["attempt"]) == (row["state"], row["attempt"]):
        return True
    for name in CONTENT:
        allowed = [expected[name]]
        if row is None:
            allowed.append("null" if name == "payload" else None)
        else:
            allowed.append(None if name == "result" and row["state"] != said["state"] else row.get(name))
        if _decoded(said[name]) not in map(_decoded, allowed):
            return False
    return {**said, **dict.fromkeys(CONTENT)} == {**expected, **dict.fromkeys(CONTENT)}


def _decoded(value: Any) -> Any:
    """PostgreSQL shows JSON as what it means, the client as text."""
    try:
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except msgspec.DecodeError:
        return value


def _payload_of(schedule: Row) -> Any:
    definition = schedule["definition"]
    if not isinstance(definition, str):
        return definition["draft"]["payload"]
    found = _PAYLOAD.search(definition)  # no JSON any more, as moments were replaced
    assert found
    return msgspec.json.decode(found[1])
