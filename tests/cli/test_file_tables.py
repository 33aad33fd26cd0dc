"""The command on a file system catalog: tables without any server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.cli.commands import Frazil

CREATE = ("table", "create", "db.t", "--schema", "id long")


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FRAZIL_CATALOG__TYPE", "hadoop")
    monkeypatch.setenv("FRAZIL_CATALOG__WAREHOUSE", f"file://{tmp_path}/lake")
    return tmp_path / "lake"


def test_a_table_is_made_changed_and_listed(frazil: Frazil, warehouse: Path) -> None:
    assert frazil(*CREATE).code == 0
    assert frazil("table", "set", "db.t", "owner=us").code == 0
    metadata = warehouse / "db/t/metadata"
    assert sorted(one.name for one in metadata.iterdir()) == [
        "v1.metadata.json",
        "v2.metadata.json",
        "version-hint.text",
    ]
    assert (metadata / "version-hint.text").read_text() == "2"
    assert [line["table"] for line in frazil("table", "list", "--json").lines] == ["db.t"]
    shown = frazil("table", "show", "db.t")
    assert f"file://{metadata}/v2.metadata.json" in shown.out
    again = frazil(*CREATE)
    assert again.code != 0
    assert "db.t" in again.err


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("table", "rename", "db.t", "db.u"), "cannot be renamed"),
        (("table", "drop", "db.t", "--yes"), "a file system table is its folder"),
        (("table", "set", "db.t", "write.metadata.path=file:///x"), "write.metadata.path"),
        (("table", "set", "db.t", "write.metadata.compression-codec=gzip"), "set it to `none`"),
    ],
)
def test_what_a_folder_cannot_do_is_refused_in_a_sentence(
    frazil: Frazil, arguments: tuple[str, ...], sentence: str
) -> None:
    assert frazil(*CREATE).code == 0
    refused = frazil(*arguments)
    assert refused.code != 0
    assert sentence in " ".join(refused.err.split())
    assert "Traceback" not in refused.err
    assert frazil("table", "show", "db.t").code == 0


def test_a_purged_table_is_gone_with_its_folder_and_others_stay(
    frazil: Frazil, warehouse: Path
) -> None:
    assert frazil(*CREATE).code == 0
    assert frazil("table", "set", "db.t", "owner=us").code == 0
    assert frazil("table", "create", "db.t2", "--schema", "id long").code == 0
    (warehouse / "db/t/data").mkdir()
    (warehouse / "db/t/data/rows.parquet").write_bytes(b"rows")
    purged = frazil("table", "purge", "db.t", "--yes")
    assert purged.code == 0, purged.err
    assert "4 objects" in purged.err
    assert "if this is interrupted, repeat" in purged.err
    assert [one for one in (warehouse / "db/t").rglob("*") if one.is_file()] == []
    assert [line["table"] for line in frazil("table", "list", "--json").lines] == ["db.t2"]
    assert frazil("table", "purge", "db.t", "--yes").code != 0
    assert frazil(*CREATE).code == 0


def test_a_purge_that_was_interrupted_is_repeated(
    frazil: Frazil, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from committer.storage.disk.local import LocalStorage

    assert frazil(*CREATE).code == 0
    assert frazil("table", "set", "db.t", "owner=us").code == 0
    delete = LocalStorage.delete
    with monkeypatch.context() as patch:

        async def half(storage: LocalStorage, locations: Sequence[str]) -> None:
            await delete(storage, locations[:1])
            raise OSError(5, "the disk is away")

        patch.setattr(LocalStorage, "delete", half)
        assert frazil("table", "purge", "db.t", "--yes").code != 0
    current = f"file://{warehouse}/db/t/metadata/v2.metadata.json"
    assert frazil.load("db.t").metadata_location == current
    assert frazil("table", "purge", "db.t", "--yes").code == 0
    assert [one for one in (warehouse / "db/t").rglob("*") if one.is_file()] == []


def test_a_version_that_a_writer_makes_during_a_purge_is_deleted_or_named(
    frazil: Frazil, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer's last look was before the deletion of its base."""
    from committer.storage.disk.local import LocalStorage

    delete = LocalStorage.delete
    metadata = warehouse / "db/t/metadata"
    left, last = 0, b""

    async def behind(storage: LocalStorage, locations: Sequence[str]) -> None:
        nonlocal left
        await delete(storage, locations)
        if left and any(one.endswith(".metadata.json") for one in locations):
            left -= 1
            (metadata / "v2.metadata.json").write_bytes(last)

    for times, code in ((1, 0), (9, 1)):
        assert frazil(*CREATE).code == 0
        last = (metadata / "v1.metadata.json").read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(LocalStorage, "delete", behind)
            left = times
            purged = frazil("table", "purge", "db.t", "--yes")
            left = 0
        assert purged.code == code, purged.err
    assert "v2.metadata.json` while its files were deleted" in " ".join(purged.err.split())
    assert frazil("table", "purge", "db.t", "--yes").code == 0


def test_a_warehouse_that_does_not_exist_is_not_made_by_reading(
    frazil: Frazil, warehouse: Path
) -> None:
    refused = frazil("table", "list")
    assert refused.code == 1
    assert str(warehouse) in " ".join(refused.err.split())
    assert "`warehouse`" in refused.err
    assert not warehouse.exists()


def test_an_object_store_needs_the_operators_word(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_CATALOG__TYPE", "hadoop")
    monkeypatch.setenv("FRAZIL_CATALOG__WAREHOUSE", "s3://bucket/lake")
    refused = frazil(*CREATE)
    assert refused.code == 2
    assert "hadoop.no-other-writers" in refused.err
    monkeypatch.setenv("FRAZIL_CATALOG__HADOOP__NO_OTHER_WRITERS", "yes")
    refused = frazil(*CREATE)
    assert refused.code == 2
    assert "expected true or false" in refused.err
