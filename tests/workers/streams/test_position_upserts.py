"""Which epoch a micro-batch is, that an upsert by positions lands."""

from __future__ import annotations

from pathlib import Path

import pytest

from committer.errors import SettingsError
from workers.settings.options import WriteOptions
from workers.sink.identity import MicroBatch
from workers.streams.position_upserts import identify, next_attempt

RUN = "00000000-0000-0000-0000-000000000001"


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path))
    monkeypatch.setenv("FRAZIL_CATALOG__URI", f"sqlite:///{tmp_path}/catalog.db")


def test_a_micro_batch_is_the_epoch_that_the_data_source_would_publish(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_text("v1\n{}\n0")
    options = WriteOptions("db.t", {}, sink="side", checkpoint=str(tmp_path))
    identity = identify(options, MicroBatch("query", RUN, 7))
    assert (identity.producer.id, identity.epoch) == ("query/side", 7)
    assert identity.producer.sequential
    assert identity.producer.ordered
    assert identity.fingerprint.kind == "spark-offsets"


def test_each_try_is_another_attempt_at_the_same_epoch() -> None:
    identity = identify(WriteOptions("db.t", {}), MicroBatch("query", RUN, 7))
    one, other = next_attempt(identity), next_attempt(identity)
    assert one.nonce != other.nonce
    assert (one.producer, one.epoch, one.fingerprint) == (
        other.producer,
        other.epoch,
        other.fingerprint,
    )
    assert not one.producer.one_shot


def test_a_named_producer_numbers_its_epochs_itself() -> None:
    options = WriteOptions("db.t", {}, producer="loader", epoch=3)
    for micro_batch in (None, MicroBatch("query", RUN, 7)):
        identity = identify(options, micro_batch)
        assert (identity.producer.id, identity.epoch) == ("loader", 3)
        assert identity.fingerprint.kind == "epoch"
        assert identity.producer.ordered
    with pytest.raises(SettingsError, match="name its `producer`"):
        identify(WriteOptions("db.t", {}), None)
