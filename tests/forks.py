"""Python programs as forks of one process that has everything imported, and otherwise as `subprocess` starts them.

For programs that take Python as it is: no options of the interpreter, no variables that it reads when it starts.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import functools
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests import fork_server

ROOT = Path(__file__).parents[1]
PR_SET_CHILD_SUBREAPER = 36


class Server:
    """The process that forks; it ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", fork_server.__name__, str(other.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )
        atexit.register(self.close)

    def start(self, request: dict[str, Any], streams: list[int]) -> int:
        """The id of a new process, which is a child of this one."""
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))
        with self._lock, _adopting():
            self._socket.sendmsg([json.dumps(request).encode()], [rights])
            return int(self._socket.recv(20))

    def close(self) -> None:
        self._socket.close()
        with suppress(ChildProcessError):
            self._process.wait()


@contextmanager
def _adopting() -> Iterator[None]:
    """Meanwhile a process whose parent ends becomes a child of this one, if that is among its ancestors."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


@functools.cache
def _server_of(pid: int) -> Server:
    return Server()


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen` of a command `[sys.executable, "-m" or "-c", ...]`."""

    def _execute_child(self, *values: Any) -> None:
        names = list(inspect.signature(subprocess.Popen._execute_child).parameters)[1:]  # type: ignore[attr-defined]
        given = dict(zip(names, values, strict=True))
        executable, how, program, *arguments = given["args"]
        assert executable == sys.executable
        environment = os.environ if given["env"] is None else given["env"]
        assert environment.get("PYTHONPATH") == os.environ.get("PYTHONPATH"), "the fork has imported its modules"
        request = {
            "how": how,
            "program": program,
            "arguments": arguments,
            "folder": str(given["cwd"] or os.getcwd()),
            "environment": dict(environment),
            "new_session": given["start_new_session"],
            "process_group": given["process_group"] if given["process_group"] >= 0 else None,
        }
        pipes = [given[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        streams = [number if pipe == -1 else pipe for number, pipe in enumerate((pipes[0], pipes[3], pipes[5]))]
        self.pid = _server_of(os.getpid()).start(request, streams)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def run(command: list[str], *, timeout: float, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` does, with the output captured as text."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with Popen(command, **{**pipes, **options}) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    ended = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        ended.check_returncode()
    return ended
