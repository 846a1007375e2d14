"""The worker. `_worker.py` puts the parts together and says what they are."""

from .worker import Worker

__all__ = ["Worker"]
