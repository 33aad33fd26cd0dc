"""`frazil table purge`: explicit, and only of what is a table's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from committer.plan.batch.adopted_paths import ADOPT_LOCATIONS_PROPERTY
from tests.support.builders.request_builders import build_request
from tests.support.cli.cli_commands import answer, set_property
from tests.support.cli.commands import Frazil


def create(frazil: Frazil, name: str = "db.flights", *more: str) -> Path:
    assert frazil("table", "create", name, "--schema", "id long", *more).code == 0
    return Path(frazil.load(name).metadata.location.removeprefix("file://"))


def names(frazil: Frazil) -> list[str]:
    return [line["table"] for line in frazil("table", "list", "--json").lines]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_purged_table_and_its_files_are_gone_and_others_stay(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    purged, kept = create(frazil), create(frazil, "db.flights2")
    (purged / "data").mkdir()
    (purged / "data" / "rows.parquet").write_bytes(b"rows")
    answer(monkeypatch, "y")
    done = frazil("table", "purge", "db.flights")
    assert done.code == 0
    assert "2 objects" in done.err
    assert str(purged) in done.err
    assert files(purged) == []
    assert names(frazil) == ["db.flights2"]
    assert files(kept)


def test_nothing_is_purged_without_a_yes(frazil: Frazil, monkeypatch: pytest.MonkeyPatch) -> None:
    location = create(frazil)
    answer(monkeypatch, "")
    refused = frazil("table", "purge", "db.flights")
    assert refused.code == 1
    assert refused.err.endswith("nothing was changed\n")
    assert names(frazil) == ["db.flights"]
    assert files(location)


def refuse(frazil: Frazil, said: str, name: str = "db.flights") -> None:
    before = frazil.load(name)
    refused = frazil("table", "purge", name, "--yes")
    assert refused.code == 1
    assert said in refused.err
    assert frazil.load(name) == before


def test_a_table_for_which_requests_wait_is_not_purged(frazil: Frazil) -> None:
    create(frazil)
    frazil.put(build_request(frazil.load()))
    refuse(frazil, "requests wait for it")


def test_a_table_whose_files_others_may_use_is_not_purged(frazil: Frazil) -> None:
    create(frazil)
    for said in ("false", "no", " FALSE "):  # for Iceberg Java, all but `true` is false
        set_property(frazil, "gc.enabled", said)
        refuse(frazil, "`gc.enabled` is false")


@pytest.mark.parametrize("inside", ["", "/below"])
def test_a_location_that_another_table_shares_is_not_purged(frazil: Frazil, inside: str) -> None:
    location = create(frazil)
    create(frazil, "db.other", "--location", f"file://{location}{inside}")
    refuse(frazil, "of table db.other")
    refuse(frazil, "of table db.flights", "db.other")


def test_a_location_around_the_warehouse_is_not_purged(frazil: Frazil, tmp_path: Path) -> None:
    create(frazil, "db.flights", "--location", f"file://{tmp_path}/warehouse")
    refuse(frazil, "holds file://")


def test_a_table_on_its_way_to_another_catalog_is_not_purged(frazil: Frazil) -> None:
    create(frazil, "db.flights__frazil_migrating_1a2b3c4d")
    refuse(frazil, "on its way", "db.flights__frazil_migrating_1a2b3c4d")


def test_a_table_that_another_configured_catalog_has_is_not_purged(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"catalog:\n  prod:\n    uri: sqlite:///{tmp_path}/prod.db\n"
        f"  away:\n    uri: sqlite:///{tmp_path}/away.db\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    create(frazil)
    location = frazil.load().metadata_location
    assert frazil("--catalog", "prod", "table", "register", "db.flights", location).code == 0
    refuse(frazil, "catalog `prod` has this table, too")
    assert "catalog `away` was not asked" in frazil("table", "purge", "db.flights", "--yes").err


def test_a_purge_that_was_interrupted_is_repeated_after_registering_the_last_file(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    from committer.storage.disk.local import LocalStorage

    location = create(frazil)
    (location / "data").mkdir()
    (location / "data" / "rows.parquet").write_bytes(b"rows")
    last = frazil.load().metadata_location
    with monkeypatch.context() as patch:

        async def ends(*_: object) -> None:
            raise OSError(5, "the disk is away")

        patch.setattr(LocalStorage, "delete", ends)
        assert frazil("table", "purge", "db.flights", "--yes").code != 0
    assert names(frazil) == []
    assert frazil("table", "register", "db.flights", last).code == 0
    assert frazil("table", "purge", "db.flights", "--yes").code == 0
    assert files(location) == []


def test_a_location_from_which_another_table_adopts_files_is_not_purged(frazil: Frazil) -> None:
    location = create(frazil)
    create(frazil, "db.other", "--property", f"{ADOPT_LOCATIONS_PROPERTY}=file://{location}/old")
    refuse(frazil, "of table db.other")


def test_adopted_files_outside_the_table_stay_and_their_folders_are_named(
    frazil: Frazil, tmp_path: Path
) -> None:
    location = create(frazil)
    old = tmp_path / "old"
    old.mkdir()
    (old / "a.parquet").write_bytes(b"rows")
    set_property(frazil, ADOPT_LOCATIONS_PROPERTY, f"file://{old}, file://{location}/old")
    done = frazil("table", "purge", "db.flights", "--yes")
    assert done.code == 0
    stays = [line for line in done.err.splitlines() if "outside stay" in line]
    assert stays == [f"Its files outside stay: file://{old}"]
    assert files(old) and files(location) == []
