"""Starts Python programs as forks of itself. Everything that `relet` imports is imported already.

To start Python and to import that takes half a second of a core, longer than most programs of tests run. This program
reads requests from the socket of which it is given the descriptor, until that is closed; `tests/forks.py` sends them.
"""

from __future__ import annotations

import array
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import termios
from contextlib import suppress
from types import ModuleType
from typing import Any

IMPORTED = (
    "psycopg",
    "uvicorn",
    "relet",
    "relet._cli.main",
    "relet._cli.top.terminal",
    "relet._cli.worker",
    "relet._cli.web",
    "relet._web",
    "relet._store.postgres",
    "relet._store.sqlite",
    "relet._worker.supervisor",
    "relet._worker.worker",
)
LARGEST = 1 << 18


def serve(requests: socket.socket) -> dict[str, Any] | None:
    """Answer each request with the id of the process. Returns the request in each of these processes."""
    while True:
        message, ancillary, *_ = requests.recvmsg(LARGEST, socket.CMSG_SPACE(3 * array.array("i").itemsize))
        if not message:
            return None
        streams = array.array("i")
        streams.frombytes(ancillary[0][2])
        gate, opened = os.pipe()
        pid = _fork_twice()
        if pid == 0:
            requests.close()
            os.close(opened)
            os.read(gate, 1)  # until the process in between has ended, and its parent has adopted this one
            os.close(gate)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return dict(json.loads(message))
        for descriptor in (gate, opened, *streams):
            os.close(descriptor)
        requests.send(str(pid).encode())


def _fork_twice() -> int:
    """The id of a process whose parent has ended; 0 in that process."""
    answers, answer = os.pipe()
    between = os.fork()
    if between == 0:
        os.close(answers)
        pid = os.fork()
        if pid:
            os.write(answer, str(pid).encode())
            os._exit(0)
        os.close(answer)
        return 0
    os.close(answer)
    os.waitpid(between, 0)
    pid = int(os.read(answers, 20))
    os.close(answers)
    return pid


def prepare(request: dict[str, Any]) -> None:
    """Make this fork equal to a new process."""
    if request["new_session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # it is the session's own: Ctrl-C reaches it
    elif request["process_group"] is not None:
        os.setpgid(0, request["process_group"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        errors = "backslashreplace" if name == "stderr" else "strict"
        buffering = 1 if name == "stderr" or os.isatty(number) else -1
        stream = open(number, mode, buffering, errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.path[0] = os.getcwd() if request["how"] == "-m" else ""
    importlib.invalidate_caches()
    sys.modules["__main__"] = ModuleType("__main__")
    sys.modules["__main__"].__dict__["__builtins__"] = __builtins__
    gc.enable()  # imported objects stay frozen: to destroy them at the end would take longer than most programs


def run(request: dict[str, Any]) -> None:
    sys.argv[:] = [request["how"], *request["arguments"]]
    if request["how"] == "-c":
        exec(compile(request["program"], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        runpy._run_module_as_main(request["program"])  # type: ignore[attr-defined]


if __name__ == "__main__":
    for module in IMPORTED:
        with suppress(ImportError):  # the web is an extra
            importlib.import_module(module)
    gc.collect()
    gc.disable()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        prepare(request)
        run(request)
