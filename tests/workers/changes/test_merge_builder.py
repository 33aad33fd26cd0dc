"""What a merge refuses when it is told, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from committer.errors import SettingsError
from frazil.spark import MergeBuilder, merge_into

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE = cast("DataFrame", None)


def begin(**options: str | int) -> MergeBuilder:
    return merge_into("db.t", SOURCE, "target.id = source.id", **options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"retry": 1}, "unknown option `retry`"),
        ({"retries": 101}, "option `retries`: expected 100 at most"),
        ({"mergeSchema": "yes"}, "option `mergeschema`: expected `false` or `true`"),
        ({"catalog.urii": "sqlite://"}, "setting `catalog.urii`: there is no such setting"),
    ],
)
def test_an_option_that_does_not_fit_is_refused_when_it_is_given(
    options: dict[str, str | int], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        begin(**options)


def test_a_table_without_its_namespace_is_refused_at_once() -> None:
    with pytest.raises(SettingsError, match="expected a name such as"):
        merge_into("flights", SOURCE, "true")


@pytest.mark.parametrize("name", ["mergeSchema", "merge-schema", "union-by-name"])
def test_an_option_evolves_the_schema_as_the_call_does(name: str) -> None:
    assert begin(**{name: True})._options == begin().with_schema_evolution()._options
    assert begin(**{name: "false"})._options == begin()._options
    assert begin().with_schema_evolution().when_matched_delete()._options.evolves_schema
