"""A table on S3 is read as one on a disk, also where an event loop runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import frazil
from tests.frazil.lake import NAME, make_table
from tests.support.servers.s3_server import S3Server

pytestmark = pytest.mark.server


@pytest.fixture
def theirs(s3_server: S3Server, tmp_path: Path) -> Any:
    return make_table(
        tmp_path,
        **{
            "warehouse": f"{s3_server.new_root()}/warehouse",
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
            "s3.endpoint": s3_server.url,
            "s3.region": s3_server.region,
        },
    )


def load(s3_server: S3Server, home: Path) -> frazil.Table:
    properties = {
        "s3.region": s3_server.region,
        "s3.endpoint": s3_server.url,
        "s3.path-style-access": "true",
    }
    return frazil.load_table(NAME, home=str(home), properties=properties)


def check(ours: frazil.Table, theirs: Any) -> None:
    assert ours.metadata_location == theirs.metadata_location
    assert ours.location().startswith("s3://")
    found = ours.scan("carrier = 'UA'").plan_files()
    wanted = theirs.scan("carrier = 'UA'").plan_files()
    assert {one.file.file_path for one in found} == {one.file.file_path for one in wanted}
    assert ours.inspect.files().num_rows == theirs.inspect.files().num_rows
    with pytest.raises(frazil.NotFoundError, match="snapshot 7"):
        ours.inspect.files(snapshot_id=7)


def test_a_table_on_s3_is_what_pyiceberg_reads(
    s3_server: S3Server, tmp_path: Path, theirs: Any
) -> None:
    check(load(s3_server, tmp_path).refresh(), theirs)


async def test_it_is_read_where_a_loop_runs(
    s3_server: S3Server, tmp_path: Path, theirs: Any
) -> None:
    check(load(s3_server, tmp_path), theirs)


def test_a_file_that_is_gone_is_named(s3_server: S3Server, tmp_path: Path, theirs: Any) -> None:
    ours = load(s3_server, tmp_path)
    (manifest, *_) = theirs.current_snapshot().manifests(theirs.io)
    theirs.io.delete(manifest.manifest_path)
    with pytest.raises(frazil.NotFoundError, match=manifest.manifest_path):
        ours.scan().plan_files()


def test_rows_are_those_that_pyiceberg_reads(
    s3_server: S3Server, tmp_path: Path, theirs: Any
) -> None:
    ours = load(s3_server, tmp_path)
    for where in ("id > 0", "carrier = 'UA'"):
        found, wanted = ours.scan(where).to_arrow(), theirs.scan(where).to_arrow()
        assert found.sort_by("id").to_pylist() == wanted.sort_by("id").to_pylist()
        assert ours.scan(where).count() == wanted.num_rows
    task = ours.scan("id > 30").plan_files()[0]
    theirs.io.delete(task.file.file_path)
    with pytest.raises(frazil.NotFoundError, match=task.file.file_path):
        ours.scan("id > 30").to_arrow()
