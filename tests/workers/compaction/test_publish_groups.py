"""The files of a compaction whose request did not land."""

from __future__ import annotations

from pathlib import Path

import pytest

from committer.iceberg.entry.data_file import DataFile
from tests.workers.branch_states import branch_state
from workers.compaction.publication.part_run import Published
from workers.compaction.publication.rewrite_request import NotLanded
from workers.compaction.publish_groups import WrittenGroup, ended
from workers.compaction.rewrite_groups import FileGroup
from workers.compaction.rewrite_options import parse_rewrite_options, rewrite_sizes
from workers.compaction.rewritten_table import RewrittenTable


def answered(folder: Path, answer: NotLanded) -> tuple[Published[FileGroup, WrittenGroup], bool]:
    """Tell a compaction that its request is refused; return that, and whether its file is there."""
    path = folder / "new.parquet"
    path.write_bytes(b"rows")
    file = DataFile(file_path=f"file:{path}", record_count=1, file_size_in_bytes=4)
    options = parse_rewrite_options("db.t", "binpack", None, None, (), {})
    with branch_state(folder) as state:
        sizes, spec = rewrite_sizes(options, {}), state.metadata.default_spec
        table = RewrittenTable(options, state, sizes, spec, None)
        found = ended(table, answer, [WrittenGroup(FileGroup((), None), (file,))])
    return found, path.exists()


@pytest.mark.parametrize("in_doubt", [True, False])
def test_files_that_may_land_yet_stay(tmp_path: Path, in_doubt: bool) -> None:
    published, is_there = answered(tmp_path, NotLanded("no", in_doubt))
    [lost] = published.lost
    assert (lost.in_doubt, is_there) == (in_doubt, in_doubt)
    assert (lost.why, published.landed) == ("no", ())
