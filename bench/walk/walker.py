"""The process that walks manifests, with the code of one checkout: `walker.py ROOT`.

For each line, a name and folders of manifests as JSON, it answers with one of the fastest times in
seconds. It finds the modules of other versions of Frazil, too, also of those that check no bounds.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

Walk = Callable[[bytes], Any]


def main(root: str) -> None:
    sys.path[0] = root
    walks = _walks()
    gc.disable()
    for line in sys.stdin:
        folder, rounds = json.loads(line)
        contents = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
        print(json.dumps(_measure(walks, contents, rounds)), flush=True)


def _measure(walks: dict[str, Walk], contents: Sequence[bytes], rounds: int) -> dict[str, float]:
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, walk in walks.items():
            gc.collect()
            start_s = time.process_time()
            for content in contents:
                walk(content)
            took_s = time.process_time() - start_s
            best[name] = min(took_s, best.get(name, took_s))
    return best


def _walks() -> dict[str, Walk]:
    """Return the walk as it is, and without the forms of bounds if it knows them."""
    module = _module("splice.manifest_walk", "manifest_walk")
    workload = importlib.import_module("bench.workload")
    spec = _module("schema.partition_spec", "partition_spec")
    kind = spec.partition_type(workload.partition_spec(), workload.schema())
    content = _module("entry.data_file", "data_file").ManifestContent.DATA

    def walk(**more: object) -> Walk:
        return lambda manifest: module.walk_additions(manifest, kind, 2, content, **more)

    with suppress(ImportError):
        forms = _module("schema.bound_forms", "bound_forms")
        schema = workload.schema()
        known = forms.bound_forms((schema,), schema, schema.highest_field_id)
        return {"checked": walk(forms=known), "unchecked": walk()}
    return {"checked": walk()}


def _module(*names: str) -> ModuleType:
    for name in names[:-1]:
        with suppress(ImportError):
            return importlib.import_module(f"committer.iceberg.{name}")
    return importlib.import_module(f"committer.iceberg.{names[-1]}")


if __name__ == "__main__":
    main(sys.argv[1])
