"""Tests of programs that use Relet: jobs run in the calling thread, and time moves only when a test moves it.

    from relet.testing import harness

    with harness(app) as relet:
        sign_up("ada@example.org")
        relet.assert_enqueued(send_mail, to="ada@example.org")
        relet.drain()

With pytest, the fixture `relet_app` is such a harness.
"""

from ._harness import Drained, Harness, harness

__all__ = ["Drained", "Harness", "harness"]
