"""Build the distribution, and make environments to install it into."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command whose output the reader sees, and stop if it fails."""
    if (code := subprocess.run(command, cwd=cwd).returncode) != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed with code {code}")


def build(folder: Path) -> tuple[Path, Path]:
    """The paths of the new sdist, and of the wheel built from it."""
    run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder)
    (sdist,) = folder.glob("relet-*.tar.gz")
    tree = unpack(sdist, folder / "unpacked")
    # From the sdist, because that is how pip builds a wheel of a release: a file missing there is missing here, too.
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=tree)
    shutil.rmtree(folder / "unpacked")
    (wheel,) = folder.glob("relet-*.whl")
    return sdist, wheel


def unpack(sdist: Path, folder: Path) -> Path:
    """The one folder that the sdist holds."""
    shutil.unpack_archive(sdist, folder, filter="data")
    (tree,) = folder.iterdir()
    return tree


class Environment:
    """An empty virtual environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        run(sys.executable, "-m", "venv", "--without-pip", folder)

    @property
    def packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def install(self, requirement: str) -> None:
        if uv := shutil.which("uv"):
            run(uv, "pip", "install", "--quiet", "--python", self.python, "-c", CONSTRAINTS, requirement)
        else:
            pip = (sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check")
            run(*pip, "install", "-qq", "-c", CONSTRAINTS, requirement)

    def output(self, program: str, *arguments: str) -> str:
        """Standard output of a program of the environment, run in its folder so that no checkout is imported."""
        command = [str(self.folder / "bin" / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{program} {' '.join(arguments)} failed with code {done.returncode}: {done.stderr}")
        return done.stdout
