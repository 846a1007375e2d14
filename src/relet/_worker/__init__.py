"""The worker. `worker.py` connects its parts and names them."""

from .worker import Worker

__all__ = ["Worker"]
