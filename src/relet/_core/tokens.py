"""Tokens of leases. Together with the id of its job, a token names one lease and no other.

A token is a UUID. Its first part names the claim that took the job. The rest is another for each try of that claim:
the server may run a try after its client has given up and repeated it, and both may take the same job, one after the
other. With one token for both leases, the owner of the first would be taken for that of the second.
"""

from __future__ import annotations

CLAIM = 24  # characters of a token that name its claim
_TRY = 12


def claim_of(token: str) -> str:
    """The part that all tokens of a claim share."""
    return token[:CLAIM]


def token_of_try(token: str, random: str) -> str:
    """The token for another try of a claim. `random`: a new token."""
    return token[:CLAIM] + random[CLAIM:]


def tokens_of_claim(token: str) -> tuple[str, str]:
    """The least and the greatest token that a claim can have."""
    return token[:CLAIM] + "0" * _TRY, token[:CLAIM] + "f" * _TRY
