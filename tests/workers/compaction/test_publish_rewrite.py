"""What becomes of the files of a compaction whose request did not land."""

from __future__ import annotations

from pathlib import Path

import pytest

from committer.catalog.catalog_properties import CatalogProperties
from committer.iceberg.entry.data_file import DataFile
from committer.reason import Reason
from committer.request.receipt_model import Receipt, ReceiptState
from committer.table_reader import open_reader
from tests.support.builders.table_builders import build_metadata
from workers.compaction.publish_rewrite import Published, WrittenGroup, ended
from workers.compaction.rewrite_groups import FileGroup
from workers.compaction.rewrite_options import parse_rewrite_options, rewrite_sizes
from workers.compaction.rewritten_table import RewrittenTable
from workers.files.store_access import USUAL_ACCESS
from workers.settings.worker_settings import WorkerSettings


def answered(folder: Path, reason: Reason) -> tuple[Published, bool]:
    """Tell a compaction that its request is refused; return that, and whether its file is there."""
    path = folder / "new.parquet"
    path.write_bytes(b"rows")
    file = DataFile(file_path=f"file:{path}", record_count=1, file_size_in_bytes=4)
    options = parse_rewrite_options("db.t", "binpack", None, None, (), {})
    catalog = CatalogProperties("frazil", {"uri": f"sqlite:///{folder}/catalog.db"})
    metadata = build_metadata(location=f"file:{folder}/t")
    with open_reader(catalog) as reader:
        table = RewrittenTable(
            options,
            WorkerSettings(catalog, f"file:{folder}/requests", "none"),
            metadata,
            None,
            rewrite_sizes(options, {}),
            metadata.default_spec,
            None,
            USUAL_ACCESS,
            reader,
        )
        refused = ReceiptState.QUARANTINED
        receipt = Receipt("p", 0, "a", refused, reason=reason, message="no")
        found = ended(table, receipt, [WrittenGroup(FileGroup((), None), (file,))])
    return found, path.exists()


def test_files_of_a_conflict_that_was_only_told_are_deleted(tmp_path: Path) -> None:
    published, is_there = answered(tmp_path, Reason.CONFLICT)
    [lost] = published.lost
    assert (lost.in_doubt, is_there) == (False, False) and "no" in lost.why


@pytest.mark.parametrize("reason", [Reason.PLAN_FAILED, Reason.SIGNATURE_MISSING])
def test_files_of_a_request_that_may_be_replayed_stay(tmp_path: Path, reason: Reason) -> None:
    published, is_there = answered(tmp_path, reason)
    [lost] = published.lost
    assert (lost.in_doubt, is_there) == (True, True) and not published.landed
