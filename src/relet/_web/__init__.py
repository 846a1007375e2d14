"""The web: an HTTP API and a dashboard over one app's jobs, safe by default. Needs `pip install 'relet[web]'`."""

from .app import create_app

__all__ = ["create_app"]
