"""Checksums as object stores want them in headers."""

from __future__ import annotations

import asyncio
import base64
import hashlib

# Of this size and above a checksum is made in a thread: milliseconds.
_LARGE_BYTES = 1024 * 1024


async def md5_of(content: bytes) -> str:
    """Return the MD5 of the content in base64."""
    if len(content) < _LARGE_BYTES:
        return _md5_of(content)
    return await asyncio.to_thread(_md5_of, content)


def _md5_of(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
