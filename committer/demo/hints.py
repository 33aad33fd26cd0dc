"""Commands to try after the demo, which work as they are printed, from the current folder."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from committer.demo.demo_options import DemoOptions, queue_folder
from committer.demo.demo_readers import TableReport, extension_path
from committer.demo.demo_table import LATEST, TABLE
from committer.storage.disk.local_files import local_path

_QUESTION = "SELECT carrier, count(*), avg(arr_delay) FROM flights GROUP BY ALL ORDER BY 2 DESC"
_QUERY_SCRIPT = """\
# Asks DuckDB about the table as it was at the end of the demo; the view is named {view}.
import sys

import duckdb

METADATA = {metadata!r}

duckdb.load_extension({avro!r})
duckdb.load_extension({iceberg!r})
duckdb.sql("FROM iceberg_scan(?)", params=[METADATA]).create_view({view!r})
print(duckdb.sql(sys.argv[1] if len(sys.argv) > 1 else "FROM {view}"))
"""


def write_query_script(home: Path, report: TableReport) -> Path:
    """Write a program that asks DuckDB, whose extensions must be loaded by their paths."""
    script = home / "query.py"
    script.write_text(
        _QUERY_SCRIPT.format(
            view=TABLE.name,
            avro=str(extension_path("avro")),
            iceberg=str(extension_path("iceberg")),
            metadata=str(_metadata_file(report)),
        )
    )
    return script


def hints(options: DemoOptions, report: TableReport) -> list[str]:
    """Return commands for a shell. The catalog that the user chose may be gone by then."""
    query_script = write_query_script(options.home, report)
    return [
        *(_of_catalog(options) if options.catalog is None else ()),
        f"{_frazil()} inspect {_quoted(_metadata_file(report))}",
        f'{_quoted(Path(sys.executable))} {_quoted(query_script)} "{_QUESTION}"',
    ]


def _of_catalog(options: DemoOptions) -> list[str]:
    queue = "" if queue_folder(options.home) else "FRAZIL_QUEUE__URL=none "
    frazil = f"{queue}FRAZIL_HOME={_quoted(options.home)} {_frazil()} table"
    tables = (TABLE, LATEST) if options.upsert else (TABLE,)
    return [
        f"{frazil} {shown} {table}" for table in tables for shown in ("show", "snapshots", "files")
    ]


def _metadata_file(report: TableReport) -> Path:
    return local_path(report.metadata_location)


def _frazil() -> str:
    script = Path(sys.executable).with_name("frazil")
    if script.is_file():
        return _quoted(script)
    return f"{_quoted(Path(sys.executable))} -m committer"


def _quoted(path: Path) -> str:
    return shlex.quote(_short(path))


def _short(path: Path) -> str:
    """Print a path, relative if it is below the current folder."""
    current = Path.cwd()
    return os.path.relpath(path, current) if path.is_relative_to(current) else str(path)
