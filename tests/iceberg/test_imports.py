"""The format is free of everything that is not the format."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import committer.iceberg

PACKAGE = Path(committer.iceberg.__file__).parent

# Nothing but the standard library, the format and what it names may be imported.
BARE_PROCESS = """
import sys
from importlib import import_module

ALLOWED = {"committer", "orjson", "mmh3", "zstandard", "pyroaring"}
FORMAT = ("committer.iceberg", "committer.errors", "committer.reason")


class OnlyTheFormat:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top == "committer" and name != top and not name.startswith(FORMAT):
            raise ImportError(f"{name} is not the format")
        if top not in ALLOWED and top.lstrip("_") not in sys.stdlib_module_names:
            if top not in sys.stdlib_module_names:
                raise ImportError(f"{name} is not allowed here")
        return None


sys.meta_path.insert(0, OnlyTheFormat())
for name in sys.argv[1:]:
    import_module(name)
"""


def test_every_module_is_importable_where_only_the_format_is_installed() -> None:
    files = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")]
    names = [".".join(("committer", "iceberg", *path.parts)) for path in files]
    modules = [name.removesuffix(".__init__") for name in names]
    assert "committer.iceberg.schema.schema" in modules
    found = subprocess.run(
        [sys.executable, "-c", BARE_PROCESS, *modules], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
