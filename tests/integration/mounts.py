"""File systems that refuse: read-only or full. Nothing else keeps root from writing.

Needs the right to mount; without it the test is skipped. The mounts end with the `with` blocks.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

# Flags of the system calls mount and umount2.
_READ_ONLY, _REMOUNT, _BIND = 1, 32, 4096
_DETACH = 2
_CHUNKS_BYTES = (1 << 16, 1 << 12, 1)


@contextmanager
def tmpfs(folder: Path, *, size: str = "64m") -> Iterator[Path]:
    """Mount a file system at the folder."""
    folder.mkdir(exist_ok=True)
    _mount(b"tmpfs", folder, b"tmpfs", 0, f"size={size}".encode())
    try:
        yield folder
    finally:
        _unmount(folder)


@contextmanager
def read_only(mount: Path) -> Iterator[None]:
    """Make a file system of `tmpfs` read-only while inside."""
    _mount(b"tmpfs", mount, b"tmpfs", _REMOUNT | _READ_ONLY, None)
    try:
        yield
    finally:
        _mount(b"tmpfs", mount, b"tmpfs", _REMOUNT, None)


@contextmanager
def read_only_file(path: Path) -> Iterator[None]:
    """Make a single file read-only for every process while inside."""
    _mount(os.fsencode(path), path, None, _BIND, None)
    try:
        _mount(None, path, None, _REMOUNT | _BIND | _READ_ONLY, None)
        yield
    finally:
        _unmount(path)


@contextmanager
def full(mount: Path) -> Iterator[None]:
    """Fill a file system to the last byte while inside."""
    ballast = mount / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in _CHUNKS_BYTES:
            with suppress(OSError):
                while file.write(bytes(size)):
                    continue
    try:
        yield
    finally:
        ballast.unlink()


def _mount(
    source: bytes | None, target: Path, kind: bytes | None, flags: int, options: bytes | None
) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source, os.fsencode(target), kind, flags, options):
        pytest.skip(f"cannot mount here (root can): {os.strerror(ctypes.get_errno())}")


def _unmount(target: Path) -> None:
    ctypes.CDLL(None).umount2(os.fsencode(target), _DETACH)
