"""Environments of the peers, made on first use in `.bench/`: a virtual environment each, and one folder for node.

Packages are not pinned: a peer is measured as a new user would install it. The report lists their versions.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".bench"


class Unavailable(Exception):
    """A system cannot run here. The message says why."""


@dataclass(frozen=True)
class PythonEnvironment:
    name: str
    packages: tuple[str, ...]

    @property
    def _folder(self) -> Path:
        return CACHE / "peers" / self.name

    def program(self) -> str:
        """The interpreter, installed if necessary."""
        ready = self._folder / "ready"
        if not ready.exists():
            self._install()
            ready.write_text("\n".join(self.packages))
        return str(self._folder / "bin" / "python")

    def _install(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        python = str(self._folder / "bin" / "python")
        if uv := shutil.which("uv"):
            _run(uv, "venv", "--quiet", "--python", sys.executable, str(self._folder))
            _run(uv, "pip", "install", "--quiet", "--python", python, *self.packages)
        else:
            _run(sys.executable, "-m", "venv", str(self._folder))
            _run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *self.packages)

    def versions(self) -> dict[str, str]:
        code = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
        names = [package.partition("[")[0] for package in self.packages]
        found = subprocess.run([self.program(), "-c", code, *names], capture_output=True, text=True, check=True)
        return dict(json.loads(found.stdout))


@dataclass(frozen=True)
class NodeEnvironment:
    """node itself is one of the packages. One call installs everything: npm removes what a later call does not name.

    Majors that need a newer node than the one that runs npm have to be named, or npm takes an older version.
    """

    packages: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return CACHE / "peers" / "node"

    def program(self) -> str:
        ready = self.folder / "ready"
        if not ready.exists():
            self._install()
            ready.write_text("\n".join(self.packages))
        return str(self.folder / "node_modules" / "node" / "bin" / "node")

    def _install(self) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise Unavailable("npm is not installed")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "package.json").write_text('{"private": true}\n')
        _run(npm, "install", "--silent", "--no-audit", "--no-fund", *self.packages, cwd=self.folder)

    def versions(self) -> dict[str, str]:
        names = [package.partition("@")[0] for package in self.packages]
        paths = {name: self.folder / "node_modules" / name / "package.json" for name in names}
        return {name: json.loads(path.read_text())["version"] for name, path in paths.items()}


def _run(*command: str, cwd: Path | None = None) -> None:
    print(f"bench: installing {command[-1]} and what it needs", file=sys.stderr, flush=True)
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"installation failed: {done.stdout.strip().splitlines()[-1:] or done.returncode}")


NODE = NodeEnvironment(("node@22", "graphile-worker", "pg-boss@12.35", "pg"))
PGQUEUER = PythonEnvironment("pgqueuer", ("pgqueuer", "asyncpg", "uvloop"))
PROCRASTINATE = PythonEnvironment("procrastinate", ("procrastinate", "psycopg[binary,pool]"))
AWA = PythonEnvironment("awa", ("awa-pg",))
HUEY = PythonEnvironment("huey", ("huey",))
REDIS = PythonEnvironment("redis", ("celery", "dramatiq[redis]", "packaging", "redis"))
