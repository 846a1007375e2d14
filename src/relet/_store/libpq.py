"""Runs statements by one call of libpq each. Frequent statements are prepared, once for each connection.

psycopg reads an answer in parts, and takes the interpreter lock for each part. While an event loop is busy, that costs
up to the switch interval of 5 ms each time. libpq itself waits for the whole answer without the interpreter lock. The
main thread waits on the socket instead, so that a signal handler runs at once.

Parameters are sent as text: the statements cast all of them.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import abc, errors, pq
from psycopg.adapt import Transformer

from .query import Row, Text

#: Statements that run for every job or every claim: prepared at the first use. Others are prepared after OFTEN uses.
HOT = frozenset({
    "claim/claim", "claim/claim_by_task", "claim/queue_flags", "limits/lock",
    "settle/succeed_plain", "enqueue/insert_one", "enqueue/insert_plain",
})  # fmt: skip
OFTEN = 5  # times on one connection

#: Prepared statements of one connection. A store has about 150. The server keeps a plan for each, and a worker for
#: hundreds of tenants would have it keep tens of thousands.
MAX_PREPARED = 600

#: The row loader of each thread, which caches how each type is read. It needs no connection: all of them use UTF-8.
_of_thread = threading.local()

#: Windows has no poll. There the main thread waits in libpq, too, and a signal handler runs after the answer.
_HAS_POLL = hasattr(select, "poll")

#: By the text of a statement: the name under which it is prepared, or how often it was used.
_prepared: WeakKeyDictionary[psycopg.Connection[Any], dict[str, bytes | int]] = WeakKeyDictionary()


def execute(raw: psycopg.Connection[Any], name: str, text: Text, params: dict[str, Any]) -> list[Row]:
    """Run the statement of this name, whose parameters are numbered."""
    values = [None if (value := params[each]) is None else encoded(value) for each in text.names]
    prepared = _prepared_name(raw, name, text.sql)
    connection = raw.pgconn
    if _HAS_POLL and threading.current_thread() is threading.main_thread():
        if prepared is None:
            connection.send_query_params(text.sql.encode(), values, result_format=pq.Format.BINARY)
        else:
            connection.send_query_prepared(prepared, values, result_format=pq.Format.BINARY)
        answer = _await_answer(connection)
    elif prepared is None:
        answer = connection.exec_params(text.sql.encode(), values, result_format=pq.Format.BINARY)
    else:
        answer = connection.exec_prepared(prepared, values, result_format=pq.Format.BINARY)  # type: ignore[arg-type]
    result = _succeeded(raw, answer)
    if not result.ntuples:
        return []
    loader = getattr(_of_thread, "loader", None) or _new_loader()
    loader.set_pgresult(result, format=pq.Format.BINARY)
    return loader.load_rows(0, result.ntuples, tuple)


def _new_loader() -> abc.Transformer:
    _of_thread.loader = loader = Transformer()
    return loader


def command(raw: psycopg.Connection[Any], text: str) -> None:
    """Run statements that have no parameters and return nothing, such as BEGIN."""
    if _HAS_POLL and threading.current_thread() is threading.main_thread():
        raw.pgconn.send_query(text.encode())
        _succeeded(raw, _await_answer(raw.pgconn))
    else:
        _succeeded(raw, raw.pgconn.exec_(text.encode()))


def _prepared_name(raw: psycopg.Connection[Any], name: str, sql: str) -> bytes | None:
    if raw.prepare_threshold is None:  # the connection goes through a pooler
        return None
    known = _prepared.setdefault(raw, {})
    found = known.get(sql, 0)
    if isinstance(found, bytes):
        return found
    if name not in HOT and found < OFTEN:
        known[sql] = found + 1
        return None
    if len(known) >= MAX_PREPARED:
        _forget_prepared(raw, known)
    prepared = f"{name}_{len(known)}".encode()  # stores in several schemas may share the connection
    _succeeded(raw, raw.pgconn.prepare(prepared, sql.encode()))
    known[sql] = prepared
    return prepared


def _forget_prepared(raw: psycopg.Connection[Any], known: dict[str, bytes | int]) -> None:
    """Give up these prepared statements: those in use are prepared again. Others, of psycopg, stay."""
    names = [name.decode() for name in known.values() if isinstance(name, bytes)]
    command(raw, "; ".join(f'deallocate "{name}"' for name in names))
    known.clear()


def encoded(value: str | float) -> bytes:
    """A parameter as libpq sends it. Text with NUL is refused: libpq would cut it off there."""
    if value is True or value is False:
        return b"true" if value else b"false"
    text = (value if type(value) is str else str(value)).encode()
    if b"\0" in text:
        raise psycopg.DataError("PostgreSQL text cannot contain NUL (0x00) bytes")
    return text


def array_text(values: Sequence[str | float | None]) -> str:
    """A list as the text of a PostgreSQL array."""
    try:
        joined = _BETWEEN.join(values)  # type: ignore[arg-type]
    except TypeError:  # some values are not text
        return "{" + ",".join(map(_element, values)) + "}"
    if not values or joined.count(_BETWEEN) != len(values) - 1:  # a value contains the separator itself
        return "{" + ",".join(map(_element, values)) + "}"
    if "\\" in joined or '"' in joined:
        joined = joined.replace("\\", "\\\\").replace('"', '\\"')
    joined = joined.replace(_BETWEEN, '","')
    return f'{{"{joined}"}}'


#: Separator between texts that are joined, so that all of them are escaped at once. JSON never contains it.
_BETWEEN = "\x1f"


def _element(value: str | float | None) -> str:
    if value is None:
        return "null"
    if not isinstance(value, str):
        return str(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _await_answer(connection: pq.abc.PGconn) -> pq.abc.PGresult | None:
    """Wait for the results of the statements that were sent. Returns the last one, or the first that is an error."""
    poll = select.poll()
    poll.register(connection.socket, select.POLLIN)
    while connection.flush():
        _wait_to_write(connection)
    last = None
    while True:
        while connection.is_busy():
            poll.poll()
            connection.consume_input()
        result = connection.get_result()
        if result is None:
            return last
        if last is None or last.status != pq.ExecStatus.FATAL_ERROR:
            last = result


def _wait_to_write(connection: pq.abc.PGconn) -> None:
    """Wait until the socket accepts more. Read what arrives meanwhile: the server may not read on before that."""
    poll = select.poll()
    poll.register(connection.socket, select.POLLIN | select.POLLOUT)
    if any(event & select.POLLIN for _, event in poll.poll()):
        connection.consume_input()


def _succeeded(raw: psycopg.Connection[Any], result: pq.abc.PGresult | None) -> pq.abc.PGresult:
    if result is not None and result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        return result
    if result is None or raw.pgconn.status == pq.ConnStatus.BAD:  # the result has no SQLSTATE then
        raise psycopg.OperationalError(raw.pgconn.get_error_message())
    raise errors.error_from_result(result, encoding="utf-8")
