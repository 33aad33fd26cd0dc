"""The names are PyIceberg's: what is written for it reads here too, but for what is listed."""

from __future__ import annotations

from inspect import isfunction, signature
from typing import Any

import pytest
from pyiceberg.table import DataScan, FileScanTask, Table
from pyiceberg.table.inspect import InspectTable

import frazil

BESIDE: dict[str, set[str]] = {
    "Table": set(),
    "TableScan": {"ref"},
    "InspectTable": {"all_entries"},
    "FileScanTask": {"head", "spec_id", "snapshot_id", "sequence_number"},
}
PARAMETERS_BESIDE = {("TableScan", "plan_files"), ("InspectTable", "manifests")}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (frazil.Table, Table),
        (frazil.TableScan, DataScan),
        (frazil.InspectTable, InspectTable),
        (frazil.FileScanTask, FileScanTask),
    ],
)
def test_each_name_is_one_of_pyiceberg_with_the_same_parameters_in_front(
    ours: type, theirs: type
) -> None:
    found = {*dir(theirs), *(name for one in theirs.__mro__ for name in annotated(one))}
    public = {name for name in dir(ours) if not name.startswith("_")}
    assert public - found == BESIDE[ours.__name__]
    for name in public & found:
        member, wanted = getattr(ours, name), getattr(theirs, name, None)
        assert isfunction(member) == isfunction(wanted), name
        if isfunction(member) and (ours.__name__, name) not in PARAMETERS_BESIDE:
            assert parameters(member) == parameters(wanted)[: len(parameters(member))], name


def annotated(kind: type) -> list[str]:
    return list(vars(kind).get("__annotations__", ()))


def parameters(function: Any) -> list[tuple[str, object]]:
    """Return names and defaults; of a filter, whose values differ on each side, the name."""
    return [
        (one.name if one.name != "expr" else "row_filter", None)
        if one.name in ("expr", "row_filter")
        else (one.name, one.default)
        for one in signature(function).parameters.values()
    ]
