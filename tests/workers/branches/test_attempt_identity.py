"""The identity of an attempt: in the names of its files, and in its request."""

from __future__ import annotations

from pathlib import Path

import pytest

from committer.request.attempt import nonce_ms
from committer.request.needs import Needs
from tests.workers.branch_states import branch_state
from workers.branches.application_name import printable_name
from workers.branches.attempt_identity import AttemptIdentity


def test_files_and_request_of_an_attempt_carry_one_uuid(tmp_path: Path) -> None:
    identity = AttemptIdentity.one_shot("nightly")
    with branch_state(tmp_path) as state:
        epoch = identity.written_epoch(state, "rewrite-files", Needs(), [])
        assert identity.attempt(state) == str(epoch.attempt)
    assert (epoch.producer.id, epoch.producer.name) == (str(identity.nonce), "nightly")
    assert epoch.producer.one_shot and nonce_ms(identity.nonce) is not None


def test_each_attempt_of_an_application_is_a_producer_of_its_own() -> None:
    producers = {AttemptIdentity.one_shot("nightly").producer.id for _ in range(20)}
    assert len(producers) == 20


@pytest.mark.parametrize(
    ("given", "shown"), [("a\nb\x1b", "ab"), ("\n", None), (None, None), ("x" * 200, "x" * 100)]
)
def test_a_name_is_kept_as_far_as_it_can_be_shown(given: str | None, shown: str | None) -> None:
    assert printable_name(given) == shown
