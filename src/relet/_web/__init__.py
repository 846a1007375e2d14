"""An HTTP API and a dashboard for the jobs of one app, secured by default. Needs `pip install 'relet[web]'`."""

from .app import create_app

__all__ = ["create_app"]
