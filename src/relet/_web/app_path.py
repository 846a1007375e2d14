"""The import path of an app, for commands that the dashboard displays."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from ..app import App

UNKNOWN = "module:app"


def app_path(app: App) -> str:
    """`module:attribute` of an app that a module has as a global variable, as the command line takes it."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType):
            for attribute, value in list(vars(module).items()):
                if value is app:
                    return f"{_module_name(name, module)}:{attribute}"
    return UNKNOWN


def _module_name(name: str, module: ModuleType) -> str:
    if name != "__main__":
        return name
    if module.__spec__ is not None:  # started with `python -m`
        return module.__spec__.name.removesuffix(".__main__")
    return Path(module.__file__ or "module").stem
