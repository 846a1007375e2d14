"""The dashboard and the HTTP API as an ASGI application. Needs `pip install 'relet[web]'`."""

from ._web import create_app

__all__ = ["create_app"]
