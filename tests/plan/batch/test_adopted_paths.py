"""Where an adopted file may lie, and which names it may not have."""

from __future__ import annotations

from uuid import UUID, uuid4, uuid5

import pytest

from committer.errors import InvalidRequestError
from committer.plan.batch.adopted_paths import (
    ADOPT_LOCATIONS_PROPERTY,
    adopt_locations,
    adopted_refusal,
    check_adopted_paths,
)
from committer.plan.batch.data_locations import AllowedPlaces
from committer.reason import Reason
from tests.support.builders.flights import build_flights
from tests.support.builders.refused_paths import TABLE

PLACES = AllowedPlaces((f"{TABLE}/",), (f"{TABLE}/metadata/",))
OLD = ("s3://old/flights/",)
ATTEMPT = uuid5(uuid4(), "main")


def refusal(path: str, *locations: str) -> str | None:
    return adopted_refusal(path, PLACES, locations)


@pytest.mark.parametrize(
    ("text", "locations"),
    [
        ("", ()),
        (" , /, ", ()),
        ("s3://old/flights", ("s3://old/flights/",)),
        ("s3://a/b/, file:///c ,s3://a/b", ("s3://a/b/", "file:///c/")),
    ],
)
def test_the_property_lists_folders(text: str, locations: tuple[str, ...]) -> None:
    assert adopt_locations({ADOPT_LOCATIONS_PROPERTY: text}) == locations
    assert adopt_locations({}) == ()


@pytest.mark.parametrize(
    "name",
    [
        "a.parquet",
        "000000_0",
        "part-0 é%20.parquet",
        f"part-0-{UUID(int=4, version=4)}-c000.parquet",
    ],
)
def test_files_of_any_name_below_the_tables_folders_may_be_adopted(name: str) -> None:
    assert refusal(f"{TABLE}/data/country=D%C3%A9/{name}") is None
    assert refusal(f"s3://old/flights/{name}", *OLD) is None


def test_other_folders_need_the_property() -> None:
    said = refusal("s3://old/flights/a.parquet")
    assert said is not None and ADOPT_LOCATIONS_PROPERTY in said
    assert refusal("s3://old/flights-2/a.parquet", *OLD) is not None
    assert refusal("s3://old/flights/../flights-2/a.parquet", *OLD) is not None
    assert refusal("s3a://old/flights/a.parquet", *OLD) is not None


@pytest.mark.parametrize(
    "folder", [TABLE, f"{TABLE}/data/a=1", TABLE.replace("s3:", "s3a:"), f"{TABLE}//data"]
)
def test_a_name_that_a_request_of_frazil_may_have_is_refused_in_the_tables_folders(
    folder: str,
) -> None:
    for name in (f"00000-0-{ATTEMPT}-1.parquet", f"{uuid4()}-{ATTEMPT}".upper()):
        said = refusal(f"{folder}/{name}", TABLE.replace("s3:", "s3a:") + "/", f"{TABLE}//")
        assert said is not None and "attempt" in said
    # No request of this table can list it there.
    assert refusal(f"s3://old/flights/{ATTEMPT}.parquet", *OLD) is None


def test_the_folder_of_the_tables_metadata_is_refused_in_any_spelling() -> None:
    every = ("s3://lake/", "s3a://lake/")
    for path in (f"{TABLE}/metadata/a.parquet", f"{TABLE}/metadata/a.parquet".replace("s3", "s3a")):
        said = refusal(path, *every)
        assert said is not None and "metadata" in said


def reason_of(*paths: str) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        check_adopted_paths(paths, PLACES, OLD)
    return caught.value.reason


def test_each_fault_has_its_reason() -> None:
    check_adopted_paths([f"{TABLE}/a/x", f"{TABLE}/b/x", "s3://old/flights/x"], PLACES, OLD)
    assert reason_of("s3://elsewhere/x") == Reason.PATH_NOT_ALLOWED
    assert reason_of(f"{TABLE}/{'x' * 256}") == Reason.FILE_NAME_TOO_LONG
    assert reason_of(f"{TABLE}/a/x", f"{TABLE}/a/x") == Reason.PATH_REPEATED
    assert reason_of(f"{TABLE}/a/x", f"{TABLE}/a/%78") == Reason.PATH_REPEATED


@pytest.mark.parametrize(
    "names", [("caf\u00e9", "cafe\u0301"), ("a b", "a%20b"), ("%C3%A9", "\u00e9")], ids=ascii
)
def test_two_files_that_may_be_one_are_both_named(names: tuple[str, str]) -> None:
    paths = [f"{TABLE}/{name}" for name in names]
    with pytest.raises(InvalidRequestError) as caught:
        check_adopted_paths(paths, PLACES, OLD)
    assert all(f"`{path}`" in str(caught.value) for path in paths)
    assert "may be one file to an engine" in str(caught.value)
    with pytest.raises(InvalidRequestError, match="is listed twice: name it once"):
        check_adopted_paths(paths[:1] * 2, PLACES, OLD)


def test_the_places_are_those_of_the_table() -> None:
    places = AllowedPlaces.of(build_flights().metadata)
    assert adopted_refusal("memory://warehouse/db/flights/x.parquet", places, ()) is None
    assert adopted_refusal("memory://warehouse/db/flights/metadata/x", places, ()) is not None
