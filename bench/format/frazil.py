"""Frazil's side of each case: from a size and a folder of its own to what is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlparse

from bench.format import tables
from bench.format.measure import Work
from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.manifest.manifest import iter_entries
from committer.iceberg.manifest.manifest_writer import encode_additions
from committer.iceberg.metadata.table_metadata import (
    TableMetadata,
    parse_table_metadata,
    print_table_metadata,
)
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.schema.bound_forms import BoundForms, bound_forms
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.splice.manifest_splice import ManifestPart, join_manifests
from committer.iceberg.splice.manifest_walk import WalkedManifest, walk_additions


def encode(size: int, _: Path) -> Work:
    files, context = tables.files(size), tables.context()
    return Work(lambda _: encode_additions(files, context, sync=tables.SYNC).added_files_count)


def decode(size: int, _: Path) -> Work:
    content = tables.manifest(size)
    return Work(lambda _: sum(1 for _ in iter_entries(content)))


def check(size: int, _: Path) -> Work:
    content = tables.manifest(size)
    return Work(lambda _: _walk(content).added_files_count)


def join(size: int, _: Path) -> Work:
    parts = [ManifestPart(content, _walk(content)) for content in tables.small_manifests(size)]
    return Work(lambda _: _join(parts))


def check_and_join(size: int, _: Path) -> Work:
    contents = tables.small_manifests(size)
    return Work(lambda _: _join([ManifestPart(content, _walk(content)) for content in contents]))


def _walk(content: bytes) -> WalkedManifest:
    context = tables.context()
    kind = partition_type(context.spec, context.schema)
    forms = _forms()
    return walk_additions(content, kind, context.format_version, ManifestContent.DATA, forms=forms)


@lru_cache
def _forms() -> BoundForms:
    """Return the forms as a committer has them: one for each table."""
    schema = tables.context().schema
    return bound_forms((schema,), schema, schema.highest_field_id)


def _join(parts: list[ManifestPart]) -> int:
    return join_manifests(parts, tables.context(), sync=tables.SYNC).added_files_count


def plan(size: int, folder: Path) -> Work:
    return _plan(size, folder, ALWAYS_TRUE)


def plan_with_a_filter(size: int, folder: Path) -> Work:
    return _plan(size, folder, parse_where(tables.filter_text(size)))


def _plan(size: int, folder: Path, filter: Expression) -> Work:
    content = tables.write_table(folder, size).read_bytes()

    def run(_: None) -> int:
        metadata = parse_table_metadata(content)
        return sum(1 for _ in plan_files(metadata, read=_read, filter=filter))

    return Work(run)


def _read(location: str) -> bytes:
    return Path(urlparse(location).path).read_bytes()


def metadata_parse(size: int, _: Path) -> Work:
    content = print_table_metadata(tables.metadata_of(size))
    return Work(lambda _: len(parse_table_metadata(content).snapshots))


def metadata_print(size: int, _: Path) -> Work:
    """Print all of the metadata: none of it was printed before."""
    return Work(_print, lambda: tables.metadata_of(size))


def metadata_print_again(size: int, _: Path) -> Work:
    def before() -> TableMetadata:
        metadata = tables.metadata_of(size)
        print_table_metadata(metadata)
        return tables.one_more(metadata)

    return Work(_print, before)


def _print(metadata: TableMetadata) -> int:
    print_table_metadata(metadata)
    return len(metadata.snapshots)


CASES: Mapping[str, Callable[[int, Path], Work]] = {
    "encode": encode,
    "decode": decode,
    "check": check,
    "join": join,
    "check and join": check_and_join,
    "plan": plan,
    "plan with a filter": plan_with_a_filter,
    "metadata parse": metadata_parse,
    "metadata print": metadata_print,
    "metadata print again": metadata_print_again,
}
