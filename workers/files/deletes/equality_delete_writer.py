"""Writes equality delete files: keys in, one delete file for each partition of each spec out.

The specification, "Equality Delete Files": a file has the columns that are compared, and its
manifest entry says which; it applies to data with lower sequence numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.sort_order import UNSORTED
from workers.arrow.arrow_types import field_id
from workers.files.file_writer import Discarding, FileNames, PartitionedWriter
from workers.files.write_target import WriteTarget

_DELETE = "write.delete."
_TARGET = "write.target-file-size-bytes"
# Iceberg's default of `write.delete.target-file-size-bytes`.
_TARGET_BYTES = str(64 << 20)


class EqualityDeleteWriter(Discarding):
    """Writes keys that are deleted. Use it as a context manager: an error inside discards its
    files.

    `specs`: each key is written once under each of them. `write` takes batches of `key_schema`.
    """

    def __init__(
        self,
        target: WriteTarget,
        specs: Sequence[PartitionSpec],
        key_schema: pa.Schema,
        names: FileNames,
    ) -> None:
        """Prepare to write. Errors: as `PartitionedWriter`."""
        properties = delete_properties(target.properties)
        ids = (field_id(column) for column in key_schema)
        self._ids = tuple(sorted(one for one in ids if one is not None))
        self._writers = [
            PartitionedWriter(
                replace(target, spec=spec, properties=properties, sort_order=UNSORTED),
                key_schema,
                replace(names, suffix=f"-deletes-{spec.spec_id}"),
            )
            for spec in specs
        ]

    def write(self, keys: pa.RecordBatch) -> None:
        """Take keys. Errors: those of a full or unavailable file system."""
        for writer in self._writers:
            writer.write(keys)

    def close(self) -> list[DataFile]:
        """Return the delete files, which are durable then."""
        return [
            replace(file, content=DataFileContent.EQUALITY_DELETES, equality_ids=self._ids)
            for writer in self._writers
            for file in writer.close()
        ]

    def discard(self) -> None:
        for writer in self._writers:
            writer.discard()


def delete_properties(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties that delete files are written by: those of their own, else those of
    data files; the size has a default of its own."""
    own = {
        f"write.{name.removeprefix(_DELETE)}": value
        for name, value in properties.items()
        if name.startswith(_DELETE)
    }
    return {**properties, _TARGET: _TARGET_BYTES, **own}
