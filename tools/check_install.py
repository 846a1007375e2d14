"""Check that a wheel installs into an empty environment: `python -m tools.check_install WHEEL`.

It is installed alone and with each extra. Each time `import relet` and `relet --version` must work,
and so must importing the modules that the extra is for.
"""

from __future__ import annotations

import argparse
import email.parser
import tempfile
import zipfile
from email.message import Message
from pathlib import Path

from .distribution import Environment

#: The modules that an extra is for. Every extra of the wheel must be listed.
MODULES = {
    "asyncpg": ["asyncpg"],
    "binary": ["psycopg", "psycopg_binary"],
    "cli": ["rich"],
    "django": ["django", "relet.contrib.django"],
    "encryption": ["cryptography"],
    "gateway": ["relet._gateway.server", "httptools"],
    "otel": ["relet.contrib.opentelemetry"],
    "pydantic": ["pydantic"],
    "sqlalchemy": ["sqlalchemy", "greenlet"],
    "web": ["relet.web"],
}
DEVELOPMENT = {"dev", "docs"}


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.BytesParser().parsebytes(archive.read(name))


def extras(wheel: Path) -> list[str]:
    return sorted(set(metadata(wheel).get_all("Provides-Extra", [])) - DEVELOPMENT)


def check(wheel: Path, chosen: list[str], folder: Path) -> Environment:
    """A new environment with the wheel and the chosen extras, checked."""
    environment = Environment(folder)
    suffix = f"[{','.join(chosen)}]" if chosen else ""
    environment.install(f"{wheel.resolve()}{suffix}")
    modules = ["relet", *(module for extra in chosen for module in MODULES[extra])]
    environment.output("python", "-c", f"import {', '.join(modules)}")
    expected = f"relet {metadata(wheel)['Version']}\n"
    if (printed := environment.output("relet", "--version")) != expected:
        raise SystemExit(f"relet --version printed {printed!r}, not {expected!r}")
    print(f"relet{suffix} installs and runs", flush=True)
    return environment


def check_each(wheel: Path) -> None:
    """The wheel alone, and with one extra at a time."""
    if unlisted := set(extras(wheel)) ^ set(MODULES):
        raise SystemExit(f"tools/check_install.py and pyproject.toml differ about the extras {sorted(unlisted)}")
    for chosen in [[], *([extra] for extra in extras(wheel))]:
        with tempfile.TemporaryDirectory(prefix="relet-install-") as folder:
            check(wheel, chosen, Path(folder) / "venv")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.check_install", description=__doc__)
    parser.add_argument("wheel", type=Path)
    check_each(parser.parse_args().wheel)


if __name__ == "__main__":
    main()
