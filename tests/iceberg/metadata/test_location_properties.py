"""Location properties are confined to folders that an operator allows, in one spelling."""

from __future__ import annotations

import pytest

from committer.iceberg.metadata.location_properties import (
    LOCATION_PROPERTIES,
    AllowedLocations,
    parse_folders,
)

WAREHOUSE, TABLE = "s3://lake/warehouse", "s3://lake/warehouse/db/flights"
ALLOWED = AllowedLocations((WAREHOUSE, "/srv/more"), inbox="s3://lake/requests")


def refusal_of(location: str, key: str = "write.data.path", table: str = TABLE) -> str | None:
    return ALLOWED.property_refusal({"owner": "me", key: location}, table)


@pytest.mark.parametrize(
    "location",
    [
        "",
        WAREHOUSE,
        f"{WAREHOUSE}/",
        f"{WAREHOUSE}/db/a=b%20c/ü",
        f"{TABLE}/elsewhere",
        "s3a://lake/warehouse/x",
        "file:///srv/more/x",
        "file:/srv/more",
        "/srv/more/x.y/..z",
    ],
)
@pytest.mark.parametrize("key", LOCATION_PROPERTIES)
def test_a_folder_that_is_allowed_may_be_named(key: str, location: str) -> None:
    assert refusal_of(location, key) is None


@pytest.mark.parametrize(
    "location",
    [
        "s3://lake",
        "s3://lake/warehouses/x",
        "s3://other/warehouse/x",
        "gs://lake/warehouse/x",
        "s3:/lake/warehouse/x",
        "lake/warehouse",
        "/warehouse/x",
        "file:///srv",
        f"{WAREHOUSE}/../secrets",
        f"{WAREHOUSE}/a/./b",
        f"{WAREHOUSE}/%2e%2e/secrets",
        f"{WAREHOUSE}/a%2f..%2F..%2f..%2fsecrets",
        f"{WAREHOUSE}/a\\..\\..\\secrets",
        f"{WAREHOUSE}//x",
        f"{WAREHOUSE}/x?y",
        f"{WAREHOUSE}/x#y",
        f"{WAREHOUSE}/x\ny",
        "s3://lake/ware%68ouse/x",
        "file:////srv/more",
    ],
)
def test_any_other_folder_is_refused_by_a_message_that_names_it(location: str) -> None:
    refusal = refusal_of(location, "write.metadata.path")
    assert refusal is not None
    assert refusal.startswith(f"property `write.metadata.path={location}`: expected a folder in")
    assert "`security.locations`" in refusal
    assert ALLOWED.table_refusal(location) is not None


def test_the_own_location_of_a_table_counts_for_its_properties_alone() -> None:
    outside = "s3://old/flights"
    assert refusal_of(f"{outside}/more", table=outside) is None
    assert ALLOWED.table_refusal(outside) is not None
    assert ALLOWED.table_refusal(TABLE) is None


@pytest.mark.parametrize(
    "location", ["s3://lake", "s3://lake/requests", "s3a://lake//requests/inbox/x"]
)
def test_the_inbox_is_no_folder_of_a_table(location: str) -> None:
    allowed = AllowedLocations((location,), inbox="s3://lake/requests")
    for refusal in (
        allowed.table_refusal(location),
        allowed.property_refusal({"write.data.path": location}, TABLE),
    ):
        assert refusal is not None and "meets the inbox" in refusal


def test_without_folders_the_catalog_decides_where_a_table_is_and_no_more() -> None:
    allowed = AllowedLocations.of("", place="", inbox="")
    assert allowed.table_refusal("s3://anywhere/t") is None
    properties = {"write.data.path": "s3://anywhere/u"}
    assert allowed.property_refusal(properties, "s3://anywhere/t") is not None
    assert allowed.property_refusal(properties, "s3://anywhere/u") is None


def test_the_setting_replaces_the_warehouse() -> None:
    assert AllowedLocations.of("", place=WAREHOUSE, inbox="").folders == (WAREHOUSE,)
    said = AllowedLocations.of(" s3://a , /b,", place=WAREHOUSE, inbox="")
    assert said.folders == ("s3://a", "/b")


@pytest.mark.parametrize("text", ["warehouse", "s3://a,b", "s3:", "/"])
def test_a_folder_that_is_no_absolute_location_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a URI or an absolute path"):
        parse_folders(text)
