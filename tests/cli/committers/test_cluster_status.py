"""`frazil status` of several committers: each is asked where its lease says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from committer.service.process.status_model import MemberStatus, ShardsStatus, Status
from tests.support.cli.commands import Frazil
from tests.support.cli.statuses import answering, status_of

GONE = "http://0.0.0.0:1"


def shards(member: str, **urls: str | None) -> ShardsStatus:
    """Return what a committer of this name says of all of them."""
    members = [
        MemberStatus(name=name, shards=32, is_leaving=False, status_url=url)
        for name, url in urls.items()
    ]
    return ShardsStatus(member=member, owned=32, members=members)


def encoded(status: Status) -> bytes:
    return status.model_dump_json().encode()


def test_one_replica_says_what_is_wrong_with_the_other(frazil: Frazil, tmp_path: Path) -> None:
    other = status_of(
        tmp_path,
        ready=False,
        conditions={"catalog": "no answer for 30 s"},
        shards=shards("b", a=None, b=None),
    )
    with answering(encoded(other)) as b:
        well = status_of(tmp_path, shards=shards("a", a=None, b=f"http://{b}"))
        with answering(encoded(well)) as a:
            found = frazil("status", "--url", a, "--json")
            shown = frazil("status", "--url", a)
    assert found.code == shown.code == 1
    assert shown.err == "frazil: committer b, catalog: no answer for 30 s\n"
    assert found.object["conditions"] == {"committer b, catalog": "no answer for 30 s"}
    assert next(iter(found.object)) == "conditions"
    one, two = found.object["replicas"]
    assert (one["name"], one["status"]["ready"]) == ("a", True)
    assert (two["name"], two["status"]["ready"]) == ("b", False)
    first = shown.out.splitlines()[0]
    assert first == "committers"
    assert "running, not ready" in shown.out


def test_a_replica_that_holds_a_lease_and_does_not_answer_is_a_condition(
    frazil: Frazil, tmp_path: Path
) -> None:
    said = status_of(tmp_path, shards=shards("a", a=None, b=GONE))
    with answering(encoded(said)) as a:
        found = frazil("status", "--url", a)
    assert found.code == 1
    assert f"committer b: it renews its lease, but does not answer at {GONE}" in found.err


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:1"])
def test_a_replica_that_only_its_own_machine_reaches_may_be_well(
    frazil: Frazil, tmp_path: Path, url: str | None
) -> None:
    said = status_of(tmp_path, shards=shards("a", a=None, b=url))
    with answering(encoded(said)) as a:
        found = frazil("status", "--url", a, "--json")
    assert (found.code, found.err) == (0, "")
    (_, other) = found.object["replicas"]
    assert other["status"] is None
    assert other["why"]


def test_another_committer_at_the_address_of_a_replica_is_not_taken_for_it(
    frazil: Frazil, tmp_path: Path
) -> None:
    stranger = status_of(tmp_path, shards=shards("c", c=None), conditions={"queue": "away"})
    with answering(encoded(stranger)) as address:
        said = status_of(tmp_path, shards=shards("a", a=None, b=f"http://{address}"))
        with answering(encoded(said)) as a:
            found = frazil("status", "--url", a, "--json")
    assert found.object["conditions"] == {}
    (_, other) = found.object["replicas"]
    assert "another committer answers: `c`" in other["why"]


def test_in_brief_the_health_of_all_parts_is_shown_and_no_table(
    frazil: Frazil, tmp_path: Path
) -> None:
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    shown = frazil("status", "--brief")
    assert (shown.code, shown.err) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in shown.out.splitlines()[1:])
    assert lines["health"] == "healthy"
    assert lines["catalog"].endswith("1 table")
    assert "0 requests" in lines["inbox"]
    assert "db.flights" not in shown.out
    said = status_of(tmp_path, conditions={"queue": "away"})
    with answering(encoded(said)) as address:
        brief = frazil("status", "--url", address, "--brief")
    assert brief.code == 1
    assert "1 condition" in brief.out
    assert "db.flights" not in brief.out


def test_an_answer_of_an_earlier_release_has_no_replicas_to_ask(
    frazil: Frazil, tmp_path: Path
) -> None:
    said = json.loads(encoded(status_of(tmp_path, shards=shards("a", a=None, b=None))))
    del said["shards"]["member"]
    for member in said["shards"]["members"]:
        del member["status_url"]
    with answering(json.dumps(said).encode()) as a:
        found = frazil("status", "--url", a, "--json")
    assert found.code == 0
    assert [one["status"] for one in found.object["replicas"]] == [None, None]
