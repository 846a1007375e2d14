"""An HTTP API and a dashboard for the jobs of one app, secured by default. Needs `pip install 'relet[web]'`."""

try:
    from .app import create_app
except ModuleNotFoundError as missing:
    package = (missing.name or "").partition(".")[0]
    if package == "relet":
        raise
    raise ModuleNotFoundError(f"relet.web needs {package}: pip install 'relet[web]'", name=missing.name) from missing

__all__ = ["create_app"]
