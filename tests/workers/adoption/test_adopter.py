"""Files are found in a storage as Spark finds them, and each has an outcome."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from committer.errors import NotFoundError
from committer.iceberg.values.types import LongType
from committer.ports.storage import ObjectInfo
from committer.storage.disk.local import LocalStorage
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.workers.parquet_files import parquet_bytes, target_of, write_encrypted
from tests.support.workers.tables import optional, schema
from workers.adoption.adopter import READS_AT_ONCE, adopt_files, find_files

TABLE = pa.table({"id": [1, 2]})
TARGET = target_of(schema(optional(1, "id", LongType())))


def names(found: list[ObjectInfo], folder: Path) -> list[str]:
    return [one.location.removeprefix(f"file://{folder}/") for one in found]


def write(folder: Path, *paths: str, content: bytes = b"x") -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


async def test_a_folder_gives_all_its_files_but_hidden_ones(tmp_path: Path) -> None:
    seen = ["000000_0", "_c=1/b.parquet", "a.parquet", "c=1/d=2/b.parquet"]
    write(tmp_path, *seen)
    write(tmp_path, "_SUCCESS", ".a.parquet.crc", "_temporary/0/a.parquet", "c=1/_metadata")
    for spelled in (f"file://{tmp_path}", f"file://{tmp_path}/"):
        found = await find_files(LocalStorage(), spelled)
        assert names(found, tmp_path) == seen


async def test_a_file_is_itself_whatever_it_is_called(tmp_path: Path) -> None:
    write(tmp_path, "_hidden")
    [found] = await find_files(LocalStorage(), f"file://{tmp_path}/_hidden")
    assert (found.location, found.size_bytes) == (f"file://{tmp_path}/_hidden", 1)


async def test_a_place_with_nothing_is_not_found(tmp_path: Path) -> None:
    write(tmp_path, "empty/_SUCCESS")
    for path in ("absent.parquet", "absent/", "empty"):
        with pytest.raises(NotFoundError, match="found none"):
            await find_files(LocalStorage(), f"file://{tmp_path}/{path}")


async def test_each_file_is_adopted_left_out_or_refused(tmp_path: Path) -> None:
    many = [f"many/{number:03d}.parquet" for number in range(2 * READS_AT_ONCE + 1)]
    write(tmp_path, *many, content=parquet_bytes(TABLE))
    write(tmp_path, "no-rows.parquet", content=parquet_bytes(TABLE.slice(0, 0)))
    write(tmp_path, "notes.txt")
    write(tmp_path, "text.parquet", content=parquet_bytes(pa.table({"id": ["a"]})))
    write_encrypted(tmp_path / "secret.parquet", TABLE, plaintext_footer=True)
    storage = LocalStorage()
    adoption = await adopt_files(storage, await find_files(storage, f"file://{tmp_path}"), TARGET)
    adopted = [one.file.file_path for one in adoption.adopted]
    assert adopted == [f"file://{tmp_path}/{path}" for path in many]
    assert [one.location.rpartition("/")[2] for one in adoption.empty] == ["no-rows.parquet"]
    refused = {one.location.rpartition("/")[2]: one.problems for one in adoption.refused}
    assert set(refused) == {"notes.txt", "text.parquet", "secret.parquet"}
    assert "no Parquet file" in refused["notes.txt"][0]
    assert "encrypted" in refused["secret.parquet"][0]
    assert refused["text.parquet"] == ("column id: found string, expected long",)


async def test_a_file_that_goes_away_is_refused() -> None:
    gone = ObjectInfo("memory://t/a.parquet", 100, 0, "")
    adoption = await adopt_files(MemoryStorage(), [gone], TARGET)
    assert adoption.refused[0].problems == ("it was deleted while it was looked at",)
