"""The end of an object is read, and taken for a footer only where it is one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.ports.storage import NewObject
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.workers.parquet_files import footer_of, parquet_bytes, write_encrypted
from workers.adoption.footer import read_footer

TABLE = pa.table({"a": [1, 2, None], "b": ["x", "y", "z"]})


async def test_a_footer_is_one_read_and_a_large_one_two() -> None:
    small = parquet_bytes(TABLE)
    wide = parquet_bytes(pa.table({f"column_{number:05d}": [number] for number in range(1_000)}))
    storage = CountingStorage(MemoryStorage())
    await storage.create([NewObject("memory://t/small", small), NewObject("memory://t/wide", wide)])
    for location, content, reads in (("memory://t/small", small, 1), ("memory://t/wide", wide, 2)):
        storage.calls.clear()
        footer = await read_footer(storage, location, len(content))
        assert footer.metadata.equals(footer_of(content).metadata)
        assert storage.calls == {"get": reads}


@pytest.mark.parametrize(
    "content",
    [b"", b"PAR1", b"a,b\n1,2\n", b"PAR1" + b"\xff\xff\xff\xff" + b"PAR1"],
    ids=["empty", "magic", "text", "length"],
)
def test_what_is_no_parquet_file_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidMetadataError):
        footer_of(content)


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_a_file_that_was_cut_is_refused(cut: int) -> None:
    content = parquet_bytes(TABLE)
    with pytest.raises(InvalidMetadataError):
        footer_of(content[:-cut])


def test_a_footer_of_other_bytes_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match="cannot be read"):
        footer_of(b"\x00" * 100 + (60).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_an_encrypted_file_is_refused_and_its_columns_are_not_looked_at(
    tmp_path: Path, plaintext_footer: bool
) -> None:
    write_encrypted(tmp_path / "a.parquet", TABLE, plaintext_footer=plaintext_footer)
    with pytest.raises(UnsupportedError, match="encrypted"):
        footer_of((tmp_path / "a.parquet").read_bytes())


async def test_a_length_that_the_file_cannot_have_is_not_read() -> None:
    content = b"x" * 100 + (1_000).to_bytes(4, "little") + b"PAR1"
    storage = CountingStorage(MemoryStorage())
    await storage.create([NewObject("memory://t/a", content)])
    with pytest.raises(InvalidMetadataError, match="1000 bytes, the file has 108"):
        await read_footer(storage, "memory://t/a", len(content))
