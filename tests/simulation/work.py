"""What one job writes and asks for, and the delete files that it may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import encode_deletion_vectors
from committer.iceberg.deletes.position_deletes import describe_position_deletes
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.locations import data_file_location
from committer.ports.storage import NewObject
from committer.request.needs import Needs, Operation
from tests.simulation.ports import Ports
from tests.simulation.producers import build_data_file
from tests.simulation.rows import Key, Positions, Row, WrittenRows

# The column that equality deletes compare.
_KEY_FIELD = 1


@dataclass(slots=True)
class Work:
    """One request to be. What its files hold is said to the onlooker when they are written."""

    metadata: TableMetadata
    attempt: UUID
    written: WrittenRows
    operation: Operation = "append"
    needs: Needs = field(default_factory=Needs)
    files: list[DataFile] = field(default_factory=list)
    objects: list[NewObject] = field(default_factory=list)

    async def write(self, ports: Ports) -> None:
        """Write all files."""
        await ports.storage.create(self.objects)

    # --- Data files ------------------------------------------------------------------------------

    def add_new(self, count: int, name: str = "00000") -> DataFile:
        """Add a data file of rows that are nowhere else."""
        file = build_data_file(self.metadata, self.attempt, name, rows=count)
        return self._add(file, file.file_path.encode())

    def add_copies(self, rows: Sequence[Row], name: str = "00000") -> DataFile | None:
        """Add a data file of rows that others hold. None: there are no rows."""
        if not rows:
            return None
        file = self.add_new(len(rows), name)
        self.written.write(file.file_path, rows)
        return file

    def add_updates(self, keys: Iterable[Key], name: str = "updated") -> DataFile:
        """Add a data file of new versions of rows."""
        found = list(keys)
        file = self.add_new(len(found), name)
        self.written.write(file.file_path, (Row(key, file.file_path) for key in found))
        return file

    # --- Delete files ----------------------------------------------------------------------------

    def delete_by_vectors(self, deleted: Sequence[tuple[DataFile, Positions]]) -> None:
        """Add a Puffin file with a vector for each of these data files."""
        path = self._path("puffin")
        encoded = encode_deletion_vectors(
            [(file, DeletionVector(positions)) for file, positions in deleted],
            file_path=path,
            created_by="a job",
        )
        self.files += encoded.delete_files
        self.objects.append(NewObject(path, encoded.content))

    def delete_by_positions(
        self, target: DataFile, deleted: Mapping[str, Positions], name: str = "deletes"
    ) -> None:
        """Add a position delete file. `target`: a data file of its partition."""
        path = self._path("parquet", name)
        file = describe_position_deletes(self._plain(target, path), deleted)
        self._add(file, path.encode())
        self.written.positions[path] = dict(deleted)

    def delete_by_keys(self, keys: Iterable[Key]) -> None:
        """Add an equality delete file of the default spec."""
        found = frozenset(keys)
        model = build_data_file(self.metadata, self.attempt, "model", rows=1)
        path = self._path("parquet", "equal")
        file = DataFile(
            content=DataFileContent.EQUALITY_DELETES,
            file_path=path,
            partition=model.partition,
            spec_id=model.spec_id,
            record_count=len(found),
            file_size_in_bytes=len(path),
            equality_ids=(_KEY_FIELD,),
        )
        self._add(file, path.encode())
        self.written.keys[path] = found

    def _plain(self, target: DataFile, path: str) -> DataFile:
        return DataFile(
            file_path=path,
            partition=target.partition,
            spec_id=target.spec_id,
            record_count=1,
            file_size_in_bytes=len(path),
        )

    def _path(self, suffix: str, name: str = "deletes") -> str:
        metadata = self.metadata
        file_name = f"{name}-{self.attempt}.{suffix}"
        return data_file_location(metadata.location, metadata.properties, "", file_name)

    def _add(self, file: DataFile, content: bytes) -> DataFile:
        self.files.append(file)
        self.objects.append(NewObject(file.file_path, content))
        return file
