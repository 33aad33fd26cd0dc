"""Which names count as one, what an object is, and whose folders are whose."""

from __future__ import annotations

from uuid import uuid4

import pytest

from committer.plan.cleanup.orphan_search import Kind, Names, SearchScope, kind_of, places_of
from tests.support.builders.flights import build_flights


@pytest.mark.parametrize(
    ("named", "listed"),
    [
        ("file:///w/t/a.parquet", "/w/t/a.parquet"),
        ("file:/w/t/a.parquet", "file:///w/t/a.parquet"),
        ("file://localhost/w/t/a.parquet", "/w/t/a.parquet"),
        ("s3a://bucket/t/a.parquet", "s3://bucket/t/a.parquet"),
        ("S3N://bucket/t//a.parquet", "s3://bucket/t/a.parquet"),
        ("s3://alias/t/a.parquet", "s3://bucket/t/a.parquet"),
        ("/w/t/day=a%2Fb/a.parquet", "/w/t/day=a%252Fb/a.parquet".replace("%25", "%")),
        ("/w/t/a b.parquet", "/w/t/a%20b.parquet"),
        ("/w/t/e\u0301.parquet", "/w/t/\u00e9.parquet"),
    ],
)
def test_spellings_that_somebody_might_take_for_one_are_one(named: str, listed: str) -> None:
    names = Names()
    names.add(named)
    assert listed in names
    assert listed.replace(".parquet", "_.parquet") not in names
    assert not names.holds_alike(listed.replace(".parquet", "_.parquet"))


def test_a_file_of_the_same_name_elsewhere_is_alike_and_not_the_same() -> None:
    names = Names()
    names.add("/w/t/data/a.parquet")
    assert "/mnt/t/data/a.parquet" not in names
    assert names.holds_alike("/mnt/t/data/a.parquet")


def test_names_with_a_waiting_attempt_are_alike() -> None:
    names, attempt = Names(), uuid4()
    names.add_attempt(attempt)
    assert names.holds_alike(f"/w/00000-{attempt}.parquet")
    assert names.holds_alike(f"/w/00000-{str(attempt).upper()}-1.parquet")
    assert not names.holds_alike(f"/w/{attempt}/00000-{uuid4()}.parquet")


def test_many_names_are_all_held_and_no_other() -> None:
    names = Names()
    for number in range(2_000):
        names.add(f"s3://bucket/t/data/{number:05d}.parquet")
    assert all(f"s3://bucket/t/data/{number:05d}.parquet" in names for number in range(2_000))
    assert not any(f"s3://bucket/t/data/{number:05d}.orc" in names for number in range(2_000))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("metadata/00001-x.metadata.json", Kind.METADATA_FILE),
        ("metadata/00001-x.gz.metadata.json", Kind.METADATA_FILE),
        ("metadata/v3.metadata.json.gz", Kind.METADATA_FILE),
        ("metadata/snap-1-1-x.avro", Kind.MANIFEST_LIST),
        ("metadata/x-m0.avro", Kind.MANIFEST),
        ("metadata/x.stats", Kind.STATISTICS),
        ("data/x.puffin", Kind.DATA_FILE),
        ("data/day=1/x.parquet", Kind.DATA_FILE),
        ("data/x.orc", Kind.DATA_FILE),
        ("data/x.avro", Kind.DATA_FILE),
        ("data/.x.parquet.crc", Kind.DATA_FILE),
        ("metadata/.00001-x.metadata.json.crc", Kind.METADATA_FILE),
        ("metadata/.snap-1-x.avro.crc", Kind.MANIFEST_LIST),
        ("data/.x.txt.crc", Kind.OTHER),
        ("data/.x.parquet", Kind.OTHER),
        ("data/..crc", Kind.OTHER),
        ("data/_x.parquet", Kind.OTHER),
        ("data/x.metadata.json", Kind.OTHER),
        ("catalog.db", Kind.OTHER),
        ("data/x", Kind.OTHER),
    ],
)
def test_the_kind_is_that_of_the_name_and_the_folder(name: str, kind: Kind) -> None:
    metadata = build_flights().metadata
    assert kind_of(f"{metadata.location}/{name}", metadata) is kind


def test_folders_within_others_are_looked_at_once() -> None:
    metadata = build_flights(
        properties={
            "write.metadata.path": "memory:/warehouse/db/flights/meta",
            "write.data.path": "memory://warehouse/db/",
        }
    ).metadata
    # A scheme without a host is another place than one with it.
    assert set(places_of(metadata)) == {
        "memory:/warehouse/db/flights/meta",
        "memory://warehouse/db",
    }


def test_a_folder_of_others_is_left_out_and_one_within_theirs_is_not_looked_at() -> None:
    metadata = build_flights(
        warehouse="s3://bucket", properties={"write.data.path": "s3://bucket/all/of/it"}
    ).metadata
    ground = SearchScope.of(
        metadata, ["s3a://bucket/db/flights/inner/", "s3://bucket/all", "s3://other/db/flights"]
    )
    assert ground.folders == ("s3://bucket/db/flights",)
    assert ground.shared == ("s3://bucket/all/of/it",)
    assert ground.is_foreign("s3://bucket/db/flights/inner/x.parquet")
    assert not ground.is_foreign("s3://bucket/db/flights/inner2/x.parquet")


def test_where_another_table_has_the_same_location_there_is_no_ground() -> None:
    metadata = build_flights().metadata
    assert SearchScope.of(metadata, [metadata.location + "/"]).folders == ()
