"""`frazil status` beside a committer that says what a test wants, and beside a real one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from committer.iceberg.updates.metadata_update import SetProperties
from committer.ledger_entry import Landed, ProducerEntry, print_entry, property_key
from committer.service.admin.table_change import change_table
from committer.service.process.composition import Parts
from committer.service.process.status_model import (
    InboxStatus,
    MemberStatus,
    OpenBreakerStatus,
    QueueStatus,
    ShardsStatus,
    Status,
    TableStatus,
)
from tests.support.builders.request_builders import build_request
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import serving, wait_until
from tests.support.cli.statuses import answering, status_of

COLUMNS = "id long, name string"


@pytest.fixture
def table(frazil: Frazil) -> Frazil:
    """Return the command in a home with one table."""
    assert frazil("table", "create", "db.flights", "--schema", COLUMNS).code == 0
    return frazil


@contextmanager
def committer(monkeypatch: pytest.MonkeyPatch, answer: bytes | Status) -> Iterator[None]:
    """Serve an answer at the address of the committer in the settings."""
    content = answer if isinstance(answer, bytes) else answer.model_dump_json().encode()
    with answering(content) as address:
        monkeypatch.setenv("FRAZIL_SERVICE__HTTP_PORT", address.rpartition(":")[2])
        yield


def test_open_breakers_and_frozen_producers_are_named(
    table: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = OpenBreakerStatus(
        table="db.flights", producer="bad", failures=20, reason="branch_unknown", again_s=42.0
    )
    frozen = TableStatus(table="db.flights", frozen_producers=3)
    said = status_of(tmp_path, open_breakers=[breaker], tables=[frozen], quarantine_age_s=7200.0)
    with committer(monkeypatch, said):
        shown = table("status").out
    for text in (
        "bad of db.flights (20 times branch_unknown, tried again in 42.0 s)",
        "3 db.flights",
    ):
        assert text in shown
    # Of the quarantine one number is shown: that of the requests that are there.
    assert "table_unknown" not in shown
    for epoch in range(2):
        table.quarantine(build_request(table.load(), epoch=epoch), "table_unknown")
    with committer(monkeypatch, said):
        assert "2 table_unknown; the oldest for 2.0 h" in table("status").out


def test_the_lag_is_shown_by_cause(
    table: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = TableStatus(table="db.flights", lag_s=90.0, held_s=7200.0)
    said = status_of(tmp_path, held_s=7200.0, unavailable_s=60.0, tables=[flights])
    with committer(monkeypatch, said):
        shown = table("status").out
    assert "no request waits; held for 2.0 h; unavailable for 60.0 s" in shown
    assert "90.0 s; held for 2.0 h" in shown


def test_who_shares_the_shards_is_named(
    table: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [
        MemberStatus(name="one", shards=21, is_leaving=False),
        MemberStatus(name="two", shards=40, is_leaving=True),
    ]
    said = status_of(tmp_path, shards=ShardsStatus(owned=21, members=members))
    with committer(monkeypatch, said):
        assert "21 of 64; 2 committers: one 21, two 40 (leaving)" in table("status").out
    alone = status_of(tmp_path, shards=ShardsStatus(owned=64, members=[]))
    with committer(monkeypatch, alone):
        assert "64 of 64; alone, without a queue" in table("status").out


# --- Beside the committer of the settings --------------------------------------------------------


def test_what_the_committer_says_is_shown_beside_what_is_found(
    table: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = status_of(tmp_path)
    with committer(monkeypatch, said):
        found, shown = table("status", "--json"), table("status")
    assert (found.code, found.err, shown.code) == (0, "", 0)
    assert Status.model_validate(found.object["committer"]["status"]) == said
    assert found.object["catalog"]["tables"] == 1
    for text in (
        "running, ready",
        "no request waits",
        f"file://{tmp_path}/requests: 0 requests",
        "catalog",
    ):
        assert text in shown.out
    for number_of_the_committer in ("2 requests", "5 waiting", "listed 10.0 s ago"):
        assert number_of_the_committer not in shown.out
    (row,) = [line.split() for line in shown.out.splitlines() if line.startswith("db.flights")]
    assert " ".join(row) == "db.flights 90.0 s 0 7 70 0 0 4 0 0 30.0 s ago"


def test_only_the_table_that_was_asked_for_is_shown(
    table: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with committer(monkeypatch, status_of(tmp_path)):
        found = table("status", "--table", "db.flights", "--json").object
        out = table("status", "--table", "db.flights").out
    assert [row["table"] for row in found["committer"]["status"]["tables"]] == ["db.flights"]
    assert "db.quiet" not in out


def test_a_paused_table_is_named_with_its_reason_and_is_exit_code_1(
    table: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    degraded = status_of(tmp_path, ready=False, conditions={"table db.flights": "AccessError: no"})
    with committer(monkeypatch, degraded):
        answer = table("status", "--json")
        shown = table("status")
    assert answer.code == shown.code == 1
    assert answer.object["conditions"] == {"committer, table db.flights": "AccessError: no"}
    assert "running, not ready" in shown.out
    assert shown.err == "frazil: committer, table db.flights: AccessError: no\n"


def test_before_the_inbox_was_listed_the_lag_is_said_to_be_unknown(
    table: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = InboxStatus(location=f"file://{tmp_path}/requests", requests=None, listed_s=None)
    queue = QueueStatus(waiting=None, pending=None)
    early = status_of(tmp_path, lag_s=None, inbox=inbox, queue=queue, phase="starting", tables=[])
    with committer(monkeypatch, early):
        out = table("status").out
    assert "not known: the inbox has not been listed yet" in out


def test_an_address_alone_tells_all_that_its_committer_knows(
    frazil: Frazil, tmp_path: Path
) -> None:
    with answering(status_of(tmp_path).model_dump_json().encode()) as address:
        out = frazil("status", "--url", address).out
    for text in ("2 requests, listed 10.0 s ago", "5 waiting, 3 of them handed out"):
        assert text in out
    assert "2 table_unknown" in out


def test_producers_that_write_once_share_a_row_and_queries_have_their_names(
    table: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_SERVICE__HTTP_PORT", "0")
    uuid = table.load().metadata.require_uuid()
    entries = {
        property_key(f"once-{number}"): with_landed(one_shot(uuid, name), number)
        for number, name in enumerate(("", "loader", "nightly"))
    }
    query = with_landed(ProducerEntry(uuid, name="flights of 2013"), 7)
    write_entries(table, {**entries, property_key("query-1"): query})
    found = table("status", "--json").object["producers"]
    assert len(found) == 4
    names = {one["query_name"] for one in found}
    assert names == {None, "flights of 2013", "loader", "nightly"}
    lines = [line.split("  ") for line in table("status").out.splitlines() if "db.f" in line]
    rows = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert rows == [
        ["db.flights", "query-1", "flights of 2013", "main", "7", "7", "107", "7"],
        ["db.flights", "3 one-shot writes", "loader and 1 other", "main", "102", "2"],
    ]
    listed = table("producer", "list", "db.flights").out
    assert "flights of 2013" in listed


def one_shot(uuid: UUID, name: str) -> ProducerEntry:
    return ProducerEntry(uuid, one_shot_ms=0, name=name)


def with_landed(entry: ProducerEntry, epoch: int) -> ProducerEntry:
    landed = Landed(epoch, "epoch", "0" * 16, UUID(int=epoch), 100 + epoch, epoch)
    return entry.with_landed(landed)


def write_entries(frazil: Frazil, entries: dict[str, ProducerEntry]) -> None:
    identifier = frazil.load().identifier

    async def decide(_: object) -> list[SetProperties]:
        return [SetProperties({key: print_entry(entry) for key, entry in entries.items()})]

    async def work(parts: Parts) -> None:
        await change_table(parts.catalog, parts.storage, parts.world, identifier, decide)

    frazil.with_parts(work)


@pytest.mark.parametrize("waits", [False, True])
def test_where_none_answers_that_is_said_and_is_a_condition_if_requests_wait(
    table: Frazil, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    monkeypatch.setenv("FRAZIL_SERVICE__HTTP_PORT", "1")
    if waits:
        table.put(build_request(table.load()))
    found, shown = table("status", "--json"), table("status")
    assert found.code == shown.code == (1 if waits else 0)
    assert found.object["committer"]["status"] is None
    assert "none answers at http://127.0.0.1:1: Connection refused" in shown.out
    assert "sqlite:" in shown.out
    if waits:
        assert shown.err.startswith("frazil: committer: 1 request waits, and none answers at")


def test_a_committer_of_another_home_is_not_taken_for_ours(
    table: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with committer(monkeypatch, status_of(tmp_path / "other", conditions={"queue": "away"})):
        found = table("status", "--json")
    assert found.code == 0
    assert found.object["committer"]["status"] is None
    assert f"{tmp_path}/other" in found.object["committer"]["why"]


def test_without_endpoints_no_committer_is_asked(
    table: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_SERVICE__HTTP_PORT", "0")
    found = table("status", "--json")
    assert (found.code, found.object["committer"]) == (0, None)


# --- At an address -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["{}", "http://{}", "http://{}/"])
def test_a_committer_elsewhere_is_asked_by_its_address_alone(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("FRAZIL_CATALOG__URI", "nonsense")
    said = status_of(tmp_path / "elsewhere")
    with answering(said.model_dump_json().encode()) as address:
        found = frazil("status", "--url", form.format(address), "--json")
    assert (found.code, found.err) == (0, "")
    assert Status.model_validate(found.object["committer"]["status"]) == said


def test_an_older_committer_that_says_less_or_more_of_tables_is_understood(
    frazil: Frazil, tmp_path: Path
) -> None:
    said = status_of(tmp_path, tables=[]).model_dump_json()
    newer = said.replace('"tables":[]', '"tables":[{"table":"db.flights","news":1}],"news":2')
    with answering(newer.encode()) as address:
        assert frazil("status", "--url", address).code == 0


@pytest.mark.parametrize("answer", [b"", b"<html>", b"{}", b'{"status": "ok"}'])
def test_something_else_at_the_address_is_no_committer(frazil: Frazil, answer: bytes) -> None:
    with answering(answer) as address:
        found = frazil("status", "--url", address)
    assert found.code == 1
    assert "what answers there is no committer" in found.err


def test_a_committer_that_does_not_serve_the_name_says_what_to_do(frazil: Frazil) -> None:
    with answering(b"403", code=403) as address:
        found = frazil("status", "--url", address)
    assert found.code == 1
    assert "it does not serve this name" in found.err
    assert "FRAZIL_SERVICE__HTTP_NAMES" in found.err


def test_nobody_at_the_address_is_exit_code_1(frazil: Frazil) -> None:
    found = frazil("status", "--url", "http://127.0.0.1:1", "--json")
    assert found.code == 1
    assert (
        found.err == "frazil: committer: none answers at http://127.0.0.1:1: Connection refused\n"
    )
    assert list(found.object) == ["conditions", "committer"]


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:port", "http://[x"])
def test_what_is_no_address_is_wrong_usage(frazil: Frazil, url: str) -> None:
    found = frazil("status", "--url", url)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert url in found.err


# --- Beside a real committer ---------------------------------------------------------------------


@pytest.mark.server
def test_a_real_committer_tells_of_landings_a_locked_table_a_lost_queue_and_quarantine(
    table: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = table.load()
    table.quarantine(build_request(loaded, epoch=9), "table_unknown")
    table.put(*(build_request(loaded, epoch=epoch) for epoch in range(3)))
    with serving(tmp_path, {"FRAZIL_QUEUE__URL": "redis://127.0.0.1:1/0"}) as service:
        monkeypatch.setenv("FRAZIL_SERVICE__HTTP_PORT", str(service.port))

        def said() -> Status | None:
            found = table("status", "--json").object["committer"]["status"]
            return None if found is None else Status.model_validate(found)

        def has_landed(requests: int) -> bool:
            status = said()
            return bool(status and sum(one.requests for one in status.tables) == requests)

        wait_until(lambda: has_landed(3), "three requests have landed")
        wait_until(lambda: not table.outstanding(), "the inbox is empty")
        status = said()
        assert status is not None
        assert status.quarantine == {"table_unknown": 1}
        assert status.inbox.location == f"file://{tmp_path}/requests"
        assert (status.phase, status.ready, list(status.conditions)) == ("running", True, ["queue"])
        answer = table("status", "--url", f"127.0.0.1:{service.port}")
        assert answer.code == 1
        assert "frazil: committer, queue:" in answer.err
        with closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            table.put(build_request(loaded, epoch=3))

            def is_paused() -> bool:
                return "committer, table db.flights: catalog database" in table("status").err

            wait_until(is_paused, "the table is paused")
            other.rollback()
        wait_until(lambda: has_landed(4), "the fourth has landed too")
        assert service.end() == 0
