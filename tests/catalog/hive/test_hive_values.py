"""What the Hive catalog writes and reads, without a server: structs, types, names, addresses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from committer.backends.catalog_kinds import open_catalog
from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.hive import hive_layout as layout
from committer.catalog.hive.pool import parse_uris
from committer.catalog.hive.thrift_values import Field, Items, Pairs, read_struct, write_struct
from committer.errors import SettingsError, UnsupportedError
from committer.iceberg.metadata.snapshot import Snapshot
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_metadata
from tests.support.memory.memory_storage import MemoryStorage

# A text that is not UTF-8, a map whose keys are lists, and one of each scalar.
ODD = {
    7: Field(TType.STRING, b"\xff\xfe".decode("utf-8", "surrogateescape")),
    2: Field(TType.BOOL, True),
    300: Field(TType.BYTE, -3),
    4: Field(TType.I16, -300),
    5: Field(TType.I32, 1 << 30),
    6: Field(TType.I64, -(1 << 60)),
    8: Field(TType.DOUBLE, 0.5),
    9: Field(TType.SET, Items(TType.I64, (1, 2))),
    10: Field(
        TType.MAP,
        Pairs(TType.LIST, TType.STRUCT, ((Items(TType.STRING, ("é",)), {1: Field(TType.I32, 1)}),)),
    ),
    11: Field(TType.LIST, Items(TType.STRUCT, ())),
}


def test_struct_that_was_read_is_written_back_byte_for_byte() -> None:
    first = TMemoryBuffer()
    write_struct(TBinaryProtocol(first), ODD)
    read = read_struct(TBinaryProtocol(TMemoryBuffer(first.getvalue())))
    assert read == ODD
    again = TMemoryBuffer()
    write_struct(TBinaryProtocol(again), read)
    assert again.getvalue() == first.getvalue()


def test_entry_shows_the_current_snapshot_and_forgets_removed_properties() -> None:
    identifier = TableIdentifier(("db",), "flights")
    base = build_metadata(location="s3://b/t", properties={"gone": "1", "gc.enabled": "false"})
    entry = layout.new_entry(identifier, base, "s3://b/t/1.json", 1)
    assert layout.parameters_of(entry)["external.table.purge"] == "false"
    summary = {"operation": "append", "total-data-files": "2", "total-records": "4"}
    snapshot = Snapshot(snapshot_id=7, timestamp_ms=9, summary=summary | {"total-files-size": "99"})
    next_ = replace(base, snapshots=(snapshot,), current_snapshot_id=7, properties={"new": "x"})
    changed = layout.swapped_entry(entry, base, next_, "s3://b/t/2.json")
    found = layout.parameters_of(changed)
    assert {"gone", "gc.enabled", "external.table.purge"}.isdisjoint(found)
    shown = ("new", "numFiles", "numRows", "totalSize", "snapshot-count", "current-snapshot-id")
    assert [found[key] for key in shown] == ["x", "2", "4", "99", "1", "7"]
    assert found["current-snapshot-summary"].startswith('{"operation":"append"')
    assert found["previous_metadata_location"] == "s3://b/t/1.json"
    assert changed[7] == entry[7]


@pytest.mark.parametrize("name", ["Flights", "a.b", " a", "a ", "", "é", "a\tb"])
def test_name_that_hive_would_change_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"lower-case|levels"):
        layout.names_of(TableIdentifier(("db",), name))
    with pytest.raises(UnsupportedError, match=r"lower-case|levels"):
        layout.names_of(TableIdentifier((name,), "t"))
    with pytest.raises(UnsupportedError, match="lower-case"):
        layout.names_of(TableIdentifier(("@hive#db",), "t"))


def test_addresses_are_parsed_with_hives_port_as_default() -> None:
    assert parse_uris("thrift://a:1, thrift://b,thrift://[::1]:2") == (
        ("a", 1),
        ("b", 9083),
        ("::1", 2),
    )


@pytest.mark.parametrize(
    "uris", ["", "thrift://", "http://a:1", "thrift://a:x", "thrift://a:1/x", "thrift://a:1,,"]
)
def test_address_that_is_none_is_refused(uris: str) -> None:
    with pytest.raises(SettingsError, match="thrift://HOST:PORT"):
        parse_uris(uris)


async def test_kerberos_is_refused_by_name() -> None:
    values = {"uri": "thrift://127.0.0.1:1", "hive.kerberos-authentication": "true"}
    with pytest.raises(SettingsError, match=r"hive\.kerberos-authentication"):
        await open_catalog(
            CatalogProperties("frazil", values), MemoryStorage(), RealWorld(), create=False
        )
