"""The files that are committed, and the programs that are asked."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from bench import workload
from bench.child import Child, Message, StoppedError, answer_lines
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_manifest
from committer.iceberg.values.single_value import decode_value
from committer.plan.batch.data_locations import names_attempt
from tests.support.iceberg.manifest_builders import added_entry

LOCATION = "file:///warehouse/db/t"


def test_a_file_has_metrics_of_twenty_columns_that_the_table_can_hold() -> None:
    schema = workload.schema()
    [found] = workload.descriptors(LOCATION, 12_345, 1, workload.FILES_A_DAY)
    file = workload.data_file(found, workload.nonce_of(0))
    context = ManifestContext(2, schema, workload.partition_spec())
    encoded = encode_manifest([added_entry(file)], context, sync=b"0123456789abcdef")
    [entry] = decode_manifest(encoded.content).entries
    assert entry.data_file == file
    assert file.lower_bounds is not None
    assert len(file.lower_bounds) == len(schema.fields) == 20
    for field_id, bound in file.lower_bounds.items():
        field = schema.field(field_id)
        assert field is not None
        decode_value(field.field_type, bound)  # has the length that its type wants


def test_every_file_of_a_request_is_named_by_its_attempt_and_no_two_are_alike() -> None:
    attempts = [workload.nonce_of(start) for start in (0, 0, 0, 3, 3, 3)]
    found = workload.descriptors(LOCATION, 0, 6, workload.FILES_A_DAY)
    files = list(map(workload.data_file, found, attempts))
    assert len({file.file_path for file in files}) == 6
    for file, attempt in zip(files, attempts, strict=True):
        assert names_attempt(file.file_path, str(attempt))


# --- Children ------------------------------------------------------------------------------------


async def _echo(*, text: str) -> Message:
    print("a library prints something")
    return {"text": text}


async def _sleep() -> Message:
    await asyncio.sleep(600)
    return {}


@pytest.fixture
def child(tmp_path: Path) -> Child:
    return Child("child", [sys.executable, __file__], log=tmp_path / "log", environment={})


@pytest.mark.slow
def test_a_child_answers_whatever_it_prints_and_tells_what_went_wrong(child: Child) -> None:
    assert child.ask("echo", text="é") == {"text": "é"}
    with pytest.raises(RuntimeError, match="child: TypeError"):
        child.ask("echo", txt="")
    assert child.ask("echo", text="still there") == {"text": "still there"}
    child.close()
    assert not child.is_alive


@pytest.mark.slow
def test_a_child_that_does_not_answer_in_time_is_ended(child: Child) -> None:
    with pytest.raises(StoppedError, match="in time"):
        child.ask("sleep", timeout_s=0.2)
    assert not child.is_alive


if __name__ == "__main__":
    asyncio.run(answer_lines({"echo": _echo, "sleep": _sleep}))
