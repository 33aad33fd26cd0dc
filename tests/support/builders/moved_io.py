"""PyIceberg's reader for the tables of the fixtures, where they are now."""

from __future__ import annotations

from typing import Any

from pyiceberg.io import InputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from tests.support.builders.fixtures import LOCATION_PREFIX, expected, fixtures_dir

_OLD = LOCATION_PREFIX.rstrip("/")


class MovedIO(PyArrowFileIO):  # type: ignore[misc]  # not typed
    """Reads at the new place what the metadata names at the old one."""

    def new_input(self, location: str) -> InputFile:
        return super().new_input(_moved(location))


def read_by_pyiceberg(name: str) -> Any:
    """Open a table of the fixtures as PyIceberg's `StaticTable`."""
    location = _moved(expected(name)["metadata_location"])
    return StaticTable.from_metadata(location, {"py-io-impl": f"{__name__}.MovedIO"})


def _moved(location: str) -> str:
    return location.replace(_OLD, str(fixtures_dir() / "java"))
