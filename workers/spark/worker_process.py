"""Makes the calls of Spark's Python workers cheap, which are short and many in a stream.

* On PySpark 4.1 each call invalidates the import caches, and every zip importer (one for each
  package folder inside `pyspark.zip`) reads its archive's directory again, though the archive has
  not changed: about a second. Newer versions do that only where the search path changed.
* After each call Spark's daemon has the garbage collector look through the whole heap, half a
  million objects that imports have made and that stay: 40 to 50 ms of CPU. Imports of ours make it
  look through those that Spark has imported before, again and again: a fifth of their time.
"""

from __future__ import annotations

import gc
import sys
import zipimport
from pathlib import Path

import pyspark

_FIXED_IN = (4, 2)
_DAEMON = "pyspark.daemon"
# Before the first call only Spark has imported; the first calls import what the later ones need; a
# connection is opened by the first commit.
_CALLS_AFTER_IMPORTS = (1, 2, 6)
_seen: dict[str, int | None] = {}
_invalidate_caches = zipimport.zipimporter.invalidate_caches
_calls = 0


def begin_call() -> None:
    """Prepare the process for this call and the next ones. Every entry from Spark calls it, before
    it imports what it needs.

    Modules that are imported by then are kept out of garbage collections from then on. Nothing else
    that is alive at that moment is lost: without a reference it still goes at once, and only cycles
    of it would stay.
    """
    global _calls
    _calls += 1
    if _calls == 1:
        patch_zipimporter()
    if _calls in _CALLS_AFTER_IMPORTS and _is_of_daemon():
        gc.freeze()


def _is_of_daemon() -> bool:
    """Return whether this is a worker that collects after each call: a fork of Spark's daemon."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name == _DAEMON


def patch_zipimporter() -> None:
    """Make a zip importer reread its archive only if that has changed. Idempotent."""
    version = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if version >= _FIXED_IN:
        return
    for importer in sys.path_importer_cache.values():
        if isinstance(importer, zipimport.zipimporter):
            # PySpark has just invalidated these, before this call.
            _seen[_key(importer)] = _modified_ns(importer)
    setattr(zipimport.zipimporter, "invalidate_caches", _invalidate_where_changed)  # noqa: B010


def _invalidate_where_changed(importer: zipimport.zipimporter) -> None:
    modified_ns = _modified_ns(importer)
    if _seen.get(_key(importer), -1) != modified_ns:
        _seen[_key(importer)] = modified_ns
        _invalidate_caches(importer)


def _key(importer: zipimport.zipimporter) -> str:
    """Return a key for each folder of the archive: its importer keeps a directory of its own."""
    return f"{importer.archive}/{importer.prefix}"


def _modified_ns(importer: zipimport.zipimporter) -> int | None:
    try:
        return Path(importer.archive).stat().st_mtime_ns
    except OSError:
        return None
