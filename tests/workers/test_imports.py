"""The imports of each module, each in a process of its own: this one has imported everything."""

from __future__ import annotations

import subprocess
import sys

import pytest


def imported_by(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(answer.stdout.split())


def below(modules: set[str], *packages: str) -> set[str]:
    return {
        module
        for module in modules
        if any(module == package or module.startswith(package + ".") for package in packages)
    }


def test_the_package_that_spark_imports_for_every_lookup_imports_nothing_of_ours() -> None:
    modules = imported_by("import pyspark_frazil")
    assert "pyspark_frazil" in modules
    assert not below(modules, "workers", "committer", "pyarrow", "redis", "pydantic", "sqlalchemy")


@pytest.mark.thorough
@pytest.mark.parametrize("module", ["workers.sink.stream_writer", "workers.sink.batch_writer"])
def test_an_executor_needs_the_table_format_only(module: str) -> None:
    modules = imported_by(f"import {module}")
    ours = (
        "committer.iceberg",
        "committer.errors",
        "committer.reason",
        "committer.request.attempt",
    )
    allowed = below(modules, *ours)
    assert below(modules, "committer") - allowed - {"committer", "committer.request"} == set()
    assert not below(modules, "redis", "sqlalchemy", "pydantic")


@pytest.mark.thorough
def test_a_writer_of_parquet_imports_no_other_format() -> None:
    modules = imported_by("import workers.files.file_writer")
    formats = "workers.files.formats"
    assert f"{formats}.parquet_format" in modules
    assert not below(modules, "pyarrow.orc", f"{formats}.orc_format", f"{formats}.avro_format")
