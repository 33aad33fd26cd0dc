"""Bytes made or damaged to do harm are refused with one clear error, in little memory, at once.

A reader that hangs runs into the time limit of the tests. `make fuzz` looks for more.
"""

from __future__ import annotations

import json
from random import Random

import pytest

from committer.iceberg.avro.container import encode_header, read_header
from tests.fuzz.bounds import fault, peak_bytes
from tests.fuzz.hostile import CORPUS
from tests.fuzz.targets import REFUSALS, TARGETS

# Bombs stand for gigabytes; one block of Avro may inflate to 32 MiB.
_PEAK_BYTES_MAX = 160 * 1024 * 1024
_DAMAGED = 300


@pytest.mark.thorough
@pytest.mark.parametrize("name", CORPUS)
def test_what_was_made_to_do_harm_is_refused_in_clear_words(name: str) -> None:
    hostile = CORPUS[name]
    target, content = TARGETS[hostile.target], hostile.build()
    with pytest.raises(REFUSALS, match=hostile.words):
        target.read(content)
    assert fault(target, content) is None


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in CORPUS if "bomb" in name or "inflate" in name])
def test_what_inflates_is_not_kept(name: str) -> None:
    hostile = CORPUS[name]
    content = hostile.build()
    assert peak_bytes(TARGETS[hostile.target], content) < _PEAK_BYTES_MAX


@pytest.mark.thorough
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_bytes_are_read_or_refused_in_clear_words(name: str) -> None:
    target, chance = TARGETS[name], Random(name)
    seeds = target.seeds()
    for _ in range(_DAMAGED):
        content = target.damage(chance.choice(seeds), chance)
        assert fault(target, content) is None, content


def test_a_writer_schema_that_is_said_as_the_type_of_a_schema_is_read() -> None:
    """The fast way of a scan looks for fields where there are none."""
    content = TARGETS["scan"].seeds()[0]
    header = read_header(content)
    schema = {"type": header.schema_json, "fields": {"a": "b"}}
    metadata = {**header.metadata, "avro.schema": json.dumps(schema).encode()}
    blocks = content[header.end_offset :]
    assert fault(TARGETS["scan"], encode_header(metadata, header.sync) + blocks) is None


@pytest.mark.parametrize("name", TARGETS)
def test_honest_bytes_are_read(name: str) -> None:
    """Else damage would be refused for what the input is, not for what was done to it."""
    refused = [seed for seed in TARGETS[name].seeds() if not _is_read(name, seed)]
    assert not refused, refused[:1]


def _is_read(name: str, content: bytes) -> bool:
    try:
        TARGETS[name].read(content)
    except REFUSALS:
        return False
    return True


@pytest.mark.parametrize("name", ["manifest", "manifest-list", "puffin", "table-metadata"])
def test_a_file_cut_anywhere_is_refused(name: str) -> None:
    target = TARGETS[name]
    content = min(target.seeds(), key=len)
    for stop in range(0, len(content) - 1, 7):
        with pytest.raises(REFUSALS):
            target.read(content[:stop])
