"""The fingerprint of a micro-batch: the hash of its entry in the checkpoint's offset log.

Spark writes the entry before the micro-batch runs and reads it again when the micro-batch is
re-run, so a re-run has the same fingerprint; a checkpoint that was reset, restored or cloned
continues with other entries, which carry their own time. If the entry cannot be read, only the
epoch's number is known, and that is logged once.
"""

from __future__ import annotations

import logging
from hashlib import blake2b
from pathlib import Path

from committer.request.commit_request import Fingerprint
from workers.files.store_access import StoreAccess

SPARK_OFFSETS = "spark-offsets"
EPOCH = "epoch"

_log = logging.getLogger("frazil.workers")
_warned: set[str] = set()


def fingerprint_of(checkpoint: str | None, batch_id: int, access: StoreAccess) -> Fingerprint:
    """Return the fingerprint of a Spark micro-batch, the strongest that can be had."""
    if checkpoint is None:
        _warn_once("its checkpoint location is not known here", about="")
        return epoch_fingerprint(batch_id)
    try:
        entry = _read(f"{checkpoint.rstrip('/')}/offsets/{batch_id}", access)
    except (OSError, ValueError, ImportError) as error:
        why = f"the offset log of checkpoint `{checkpoint}` cannot be read ({error})"
        _warn_once(why, about=checkpoint)
        return epoch_fingerprint(batch_id)
    return Fingerprint(kind=SPARK_OFFSETS, value=blake2b(entry, digest_size=32).hexdigest())


def epoch_fingerprint(epoch: int) -> Fingerprint:
    """Return the fingerprint of an epoch of which only the number is known."""
    return Fingerprint(kind=EPOCH, value=str(epoch))


def local_path(location: str) -> Path | None:
    """Return the file of a location without scheme, or of scheme `file`; None for any other."""
    if location.startswith("file:"):
        return Path("/" + location.removeprefix("file:").lstrip("/"))
    return None if "://" in location else Path(location)


def _read(location: str, access: StoreAccess) -> bytes:
    path = local_path(location)
    if path is not None:
        return path.read_bytes()
    # A checkpoint on this machine takes no Arrow.
    from pyarrow import fs

    from workers.files.file_system import open_object_store

    if (objects := open_object_store(location, access)) is not None:
        return objects.read(location)
    file_system, name = fs.FileSystem.from_uri(location)
    with file_system.open_input_stream(name) as stream:
        return bytes(stream.read())


def _warn_once(why: str, *, about: str) -> None:
    if about in _warned:
        return
    _warned.add(about)
    _log.warning(
        "micro-batches are known by their number only, because %s: a checkpoint that was reset or"
        " cloned cannot be told from a re-run",
        why,
    )
