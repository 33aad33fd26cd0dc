"""What to try after the demo: commands that work as they are printed, from the current folder."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from committer.demo.readers import DUCKDB_EXTENSIONS, TableReport, extension_path
from committer.demo.table import TABLE

_SQL = (
    "SELECT carrier, count(*) AS flights, avg(arr_delay) AS delay"
    " FROM iceberg_scan(?) GROUP BY ALL ORDER BY flights DESC"
)


def hints(home: Path, report: TableReport) -> list[str]:
    """Commands for a shell."""
    frazil = f"FRAZIL_HOME={_quoted(home)} {_frazil()}"
    metadata = Path(report.metadata_location.removeprefix("file://"))
    return [
        f"{frazil} table show {TABLE}",
        f"{frazil} table snapshots {TABLE}",
        f"{frazil} table files {TABLE}",
        f"{_frazil()} inspect {_quoted(metadata)}",
        f"{_quoted(Path(sys.executable))} -c {shlex.quote(_duckdb(metadata))}",
    ]


def _frazil() -> str:
    script = Path(sys.executable).with_name("frazil")
    if script.is_file():
        return _quoted(script)
    return f"{_quoted(Path(sys.executable))} -m committer"


def _duckdb(metadata: Path) -> str:
    extensions = [_short(extension_path(name)) for name in DUCKDB_EXTENSIONS]
    load = "; ".join(f"duckdb.load_extension({_literal(path)})" for path in extensions)
    return (
        f"import duckdb; {load};"
        f" print(duckdb.sql({_literal(_SQL)}, params=[{_literal(_short(metadata))}]))"
    )


def _literal(text: str) -> str:
    """A Python string in double quotes: single ones are the shell's."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _quoted(path: Path) -> str:
    return shlex.quote(_short(path))


def _short(path: Path) -> str:
    """Relative where that is below the current folder."""
    current = Path.cwd()
    return os.path.relpath(path, current) if path.is_relative_to(current) else str(path)
