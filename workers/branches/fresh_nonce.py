"""The nonce of a write that no query names."""

from __future__ import annotations

from uuid import UUID

from committer.real_world import RealWorld
from committer.request.attempt import timed_nonce


def fresh_nonce() -> UUID:
    """Draw a nonce that tells when it was drawn."""
    world = RealWorld()
    return timed_nonce(world.now_ms(), world.uuid())
