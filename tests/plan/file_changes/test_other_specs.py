"""Partitions replaced where files of other specs hold some of their rows."""

from __future__ import annotations

from dataclasses import replace

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.values.single_value import encode_value
from committer.iceberg.values.types import DateType
from committer.plan.operations.conflict import Conflict, ConflictCode
from tests.plan.branches import Branch, data_file, path_of


def of_day(name: str, day: int, carrier: str | None = None) -> DataFile:
    """Build a file of one day, by spec 1; its carrier is known by its metrics, if at all."""
    file = data_file(name, carrier, partition=(day,), spec_id=1)
    return file if carrier else replace(file, null_value_counts=None)


def by_carrier_then_by_day() -> Branch:
    branch = Branch.build(2)
    branch.append(data_file("a1"), data_file("b1", "BB"))
    branch.by_day()
    return branch


def test_files_of_another_spec_whose_rows_are_all_replaced_are_removed() -> None:
    branch = by_carrier_then_by_day()
    branch.append(of_day("aa_only", 17_000, "AA"), of_day("bb_only", 17_000, "BB"))

    branch.land(branch.change("replace-partitions", data_file("a2")))

    assert branch.names() == {"a2", "b1", "bb_only"}


def test_files_of_another_spec_that_may_hold_some_of_the_rows_conflict() -> None:
    branch = by_carrier_then_by_day()
    branch.append(of_day("any", 17_000))

    found = branch.plan(branch.change("replace-partitions", data_file("a2")))

    assert isinstance(found, Conflict)
    assert found.code is ConflictCode.PARTIAL_MATCH
    assert found.paths == (path_of("any"),)


def test_files_of_an_older_spec_are_kept_only_where_their_metrics_say_other_days() -> None:
    branch = Branch.build(2)
    branch.append(on_days("both", 16_999, 17_000), on_days("other", 16_998, 16_999))
    branch.by_day()
    change = branch.change("replace-partitions", of_day("new", 17_000))

    found = branch.plan(change)
    assert isinstance(found, Conflict)
    assert found.paths == (path_of("both"),)

    branch.land(branch.change("delete", removed=["both"]))
    branch.append(on_days("same", 17_000, 17_000))
    branch.land(change)
    assert branch.names() == {"new", "other"}


def on_days(name: str, first: int, last: int) -> DataFile:
    """Build a file of carrier AA, by spec 0, with the bounds of its days."""
    file = data_file(name)
    rows, nulls = dict(file.value_counts or {}), dict(file.null_value_counts or {})
    lower, upper = (encode_value(DateType(), day) for day in (first, last))
    return replace(
        file,
        value_counts={**rows, 3: file.record_count},
        null_value_counts={**nulls, 3: 0},
        lower_bounds={**(file.lower_bounds or {}), 3: lower},
        upper_bounds={**(file.upper_bounds or {}), 3: upper},
    )


def test_more_partitions_than_one_filter_says_are_looked_up_in_several() -> None:
    branch = by_carrier_then_by_day()
    branch.append(
        of_day("of_205", 17_000, "C205"),
        of_day("of_300", 17_000, "C300"),
    )

    files = [data_file(f"new{number}", f"C{number:03}") for number in range(250)]
    branch.land(branch.change("replace-partitions", *files))

    assert {"a1", "b1", "of_300"} <= branch.names()
    assert "of_205" not in branch.names()
