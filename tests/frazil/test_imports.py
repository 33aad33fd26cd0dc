"""`frazil` can be imported where nothing but its base is installed, and stays light elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.cli.serving import REPOSITORY

MODULES = ("frazil", "frazil.spark")
LOADED = """
import json, sys
before = set(sys.modules)
import MODULE
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""
OF_EXTRAS = {"aiobotocore", "aiohttp", "numpy", "orjson", "pyarrow", "pydantic", "pyspark"} | {
    *("py4j", "pydantic_settings", "redis", "rich", "sqlalchemy", "structlog", "typer"),
}


@pytest.mark.parametrize("module", MODULES)
def test_it_is_imported_where_only_the_base_is_installed(module: str) -> None:
    ended = _run(["-m", "tests.support.cli.installation", _asked(LOADED.replace("MODULE", module))])
    assert "frazil" in json.loads(ended)


@pytest.mark.parametrize("module", MODULES)
def test_it_imports_nothing_large_where_all_is_installed(module: str) -> None:
    loaded = set(json.loads(_run(["-c", LOADED.replace("MODULE", module)])))
    assert loaded & OF_EXTRAS == set()


def _asked(program: str) -> str:
    return json.dumps({"extras": [], "with": [], "without": [], "program": program})


def _run(arguments: list[str]) -> str:
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout
