"""Commands as a person or a script runs them, without a committer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from committer.__main__ import main
from committer.errors import AccessError
from committer.iceberg.schema.schema import print_schema
from committer.plan.cleanup.orphan_search import data_files_of
from committer.ports.storage import ObjectInfo
from committer.request.request_format import EncodedRequest, seal_request
from committer.request.request_key import published_key
from committer.service.process.composition import Parts
from committer.storage.inbox.inbox import QuarantineRecord
from committer.storage.scheme import SchemeStorage
from committer.table_defaults import NEW_TABLE_PROPERTIES
from tests.support.builders.request_builders import build_request, changed_line
from tests.support.cli.cli_commands import create, request
from tests.support.cli.commands import Frazil

# --- Tables --------------------------------------------------------------------------------------


def test_a_created_table_is_what_was_asked_for(frazil: Frazil) -> None:
    create(
        frazil,
        "db.flights",
        *("--partition", "month(at), bucket(8, name)", "--sort-order", "id desc"),
        *("--property", "a=b=c", "--format-version", "3"),
    )
    shown = frazil("table", "show", "db.flights", "--json").object
    assert shown["format_version"] == 3
    assert shown["properties"]["a"] == "b=c"
    assert NEW_TABLE_PROPERTIES.items() <= shown["properties"].items()
    assert [field["name"] for field in shown["partition_spec"]["fields"]] == [
        "at_month",
        "name_bucket",
    ]
    assert shown["sort_order"]["fields"][0]["direction"] == "desc"
    assert shown["location"].endswith("/warehouse/db/flights")


def test_a_creator_reads_how_much_history_the_table_keeps(frazil: Frazil) -> None:
    made = frazil("table", "create", "db.flights", "--schema", "id long")
    assert "newest 5,000 snapshots of each branch and those of the last hour" in made.err
    assert "table set db.flights history.expire.max-snapshot-age-ms=432000000" in made.err
    kept = ("--property", "history.expire.max-snapshot-age-ms=432000000")
    made = frazil("table", "create", "db.kept", "--schema", "id long", *kept)
    assert made.err.startswith("created db.kept") and made.err.count("\n") == 1


def test_a_schema_may_come_from_a_file_in_the_specifications_form(
    frazil: Frazil, tmp_path: Path
) -> None:
    create(frazil, "db.first")
    printed = frazil("table", "schema", "db.first", "--json")
    file = tmp_path / "schema.json"
    file.write_text(printed.out)
    assert frazil("table", "create", "db.second", "--schema", str(file)).code == 0
    assert frazil("table", "schema", "db.second", "--json").object == printed.object
    assert print_schema(frazil.load("db.second").metadata.current_schema) == printed.object


def test_tables_of_one_namespace_or_of_all_are_listed(frazil: Frazil) -> None:
    create(frazil, "db.b")
    create(frazil, "db.a")
    create(frazil, "other.deep.c")
    names = [line["table"] for line in frazil("table", "list", "--json").lines]
    assert names == ["db.a", "db.b", "other.deep.c"]
    assert frazil("table", "list", "other.deep").out.split() == ["table", "other.deep.c"]


@pytest.mark.parametrize("reading", ["show", "schema", "snapshots", "history", "files"])
def test_a_table_that_is_not_there_is_exit_code_1_and_one_line(
    frazil: Frazil, tmp_path: Path, reading: str
) -> None:
    create(frazil)
    answer = frazil("table", reading, "db.none")
    assert (answer.code, answer.out) == (1, "")
    where = f"catalog `frazil` (sqlite:///{tmp_path}/catalog.db)"
    assert answer.err == f"frazil: no table db.none in {where}: `db` has `db.flights`\n"


@pytest.mark.parametrize("reading", ["show", "schema", "snapshots", "history", "files"])
def test_a_table_without_snapshots_can_be_looked_at(frazil: Frazil, reading: str) -> None:
    create(frazil)
    assert frazil("table", reading, "db.flights").code == 0
    assert frazil("table", reading, "db.flights", "--json").code == 0


def test_a_name_that_is_taken_is_refused(frazil: Frazil) -> None:
    create(frazil)
    answer = frazil("table", "create", "db.flights", "--schema", "id long")
    assert answer.code == 1
    assert "db.flights" in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("table", "show", "flights"), "such as `db.flights`"),
        (("table", "create", "db.x"), "--schema"),
        (("table", "create", "db.x", "--schema", "id lon"), "unknown type `lon`"),
        (("table", "create", "db.x", "--schema", "id lon"), "did you mean `long`?"),
        (("table", "create", "db.x", "--schema", "id lon"), "expected one of boolean, int, long"),
        (("table", "create", "db.x", "--schema", "id decimel(9, 2)"), "did you mean `decimal`?"),
        (("table", "create", "db.x", "--schema", "id lisst<int>"), "did you mean `list`?"),
        (("table", "create", "db.x", "--schema", "id xyzzy"), "unknown, struct<…>, list<…>"),
        (
            ("table", "create", "db.x", "--schema", "id long", "--partition", "buket(4, id)"),
            "did you mean `bucket`?",
        ),
        (("quarantine", "list", "--code", "nonsense"), "there are request_truncated"),
        (("quarantine", "list", "--reason", "table_unknow"), "did you mean `table_unknown`?"),
        (("quarantine", "discard", "--all", "--code", "nonsense"), "no reason code"),
        (("quarantine", "discard", "--all", "--reason", "table_unknown"), "--code table_unknown"),
        (("table", "create", "db.x", "--schema", "none.json"), "schema file `none.json`"),
        (("table", "create", "db.x", "--schema", "{}"), "type `struct`"),
        (("table", "create", "db/x.y", "--schema", "id long"), "without `/`"),
        (("table", "create", "db.x", "--schema", "v variant"), "format version 3"),
        (
            ("table", "create", "db.x", "--schema", "a fixed[4]", "--partition", "a"),
            "identity of a fixed column is not supported",
        ),
        (("table", "create", "db.x", "--schema", "id long", "--property", "a"), "KEY=VALUE"),
        (("table", "create", "db.x", "--schema", "id long", "--location", "ftp://b/x"), "ftp:"),
        (("quarantine", "replay"), "expected KEYs or --all, not both"),
        (("quarantine", "discard", "a", "--all"), "filters go with --all"),
        (("nonsense",), "nonsense"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_was_expected(
    frazil: Frazil, arguments: tuple[str, ...], said: str
) -> None:
    create(frazil)
    answer = frazil(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


# --- Settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("FRAZIL_CATALOG__URI", "foo", "`catalog.uri` (FRAZIL_CATALOG__URI)"),
        ("FRAZIL_INBOX", "ftp://b/x", "`inbox` (FRAZIL_INBOX)"),
        ("FRAZIL_QUEUE__URL", "http://x", "queue.url"),
        ("FRAZIL_QUEUE__URL", "redis://localhost:99999", "`queue.url` (FRAZIL_QUEUE__URL)"),
        ("FRAZIL_COMMIT__MIN_INTERVAL_MS", "soon", "`commit.min_interval_ms`"),
        ("FRAZIL_COMIT__MIN_INTERVAL_MS", "5", "FRAZIL_COMIT__MIN_INTERVAL_MS"),
        ("FRAZIL_COMMIT_MIN_INTERVAL_MS", "5", "did you mean `FRAZIL_COMMIT__MIN_INTERVAL_MS`?"),
        ("FRAZIL_QUEUE_URL_FILE", "/x", "did you mean `FRAZIL_QUEUE__URL_FILE`?"),
        ("FRAZIL_COMMIT__INTERVAL", "5", "there is no such setting"),
        ("FRAZIL_CATALOG__S3__ENDPOINT", "localhost:1", "expected http://HOST:PORT"),
        ("FRAZIL_CONFIG", "/does/not/exist", "FRAZIL_CONFIG"),
    ],
)
def test_a_wrong_setting_is_named_in_one_line_with_exit_code_2(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, named: str
) -> None:
    monkeypatch.setenv(variable, value)
    answer = frazil("table", "list")
    assert (answer.code, answer.out) == (2, "")
    assert named in answer.err
    assert answer.err.count("\n") == 1


# --- Status --------------------------------------------------------------------------------------


def test_status_counts_what_waits_and_since_when(frazil: Frazil) -> None:
    create(frazil)
    frazil.put(request(frazil), request(frazil, epoch=1), request(frazil, producer="query-2"))
    frazil.quarantine(request(frazil, epoch=9), "table_unknown")
    found = frazil("status", "--json")
    assert found.object["inbox"]["requests"] == 3
    assert found.object["inbox"]["oldest_age_ms"] >= 0
    assert found.object["quarantined"] == 1
    outstanding = found.object["outstanding"]
    assert [(one["table"], one["producer"], one["requests"]) for one in outstanding] == [
        ("db.flights", "query-1", 2),
        ("db.flights", "query-2", 1),
    ]


def test_status_of_one_table_counts_that_table(frazil: Frazil) -> None:
    create(frazil)
    create(frazil, "db.quiet")
    frazil.put(request(frazil))
    assert frazil("status", "--table", "db.quiet", "--json").object["inbox"]["requests"] == 0
    assert frazil("status", "--table", "db.none").code == 1


def test_status_counts_a_table_that_cannot_be_read(frazil: Frazil) -> None:
    create(frazil)
    Path(frazil.load().metadata_location.removeprefix("file://")).unlink()
    answer = frazil("status", "--json")
    assert answer.object["catalog"]["tables"] == 1
    assert "table db.flights" in answer.object["conditions"]


def test_status_tells_what_is_known_when_the_queue_does_not_answer(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(frazil)
    frazil.put(request(frazil))
    monkeypatch.setenv("FRAZIL_QUEUE__URL", "redis://:secret@localhost:1/0")
    answer = frazil("status", "--json")
    assert answer.code == 1
    assert answer.object["inbox"]["requests"] == 1
    assert set(answer.object["conditions"]) == {"queue", "committer"}
    assert "secret" not in answer.out + answer.err


def test_status_says_when_a_private_queue_runs(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_QUEUE__URL", "private")
    answer = frazil("status")
    assert answer.code == 1
    assert answer.err.endswith(
        "No such file or directory (a private queue runs while `frazil serve` runs)\n"
    )


def test_status_for_people_has_the_same_facts(frazil: Frazil) -> None:
    create(frazil)
    frazil.put(request(frazil))
    out = frazil("status").out
    assert "1 request" in out
    assert "db.flights  query-1" in out


# --- Inspecting ----------------------------------------------------------------------------------


def test_a_file_is_inspected_by_path_and_by_uri(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(frazil)
    (tmp_path / "some file").write_bytes(request(frazil).content)
    monkeypatch.chdir(tmp_path)
    by_path = frazil("inspect", "some file", "--json")
    assert by_path.lines[0]["kind"] == "commit-request"
    assert frazil("inspect", f"file:{tmp_path}/some file", "--json") == by_path
    assert "some file" not in frazil("inspect", "some file", "--metrics").err


def test_a_broken_request_is_shown_and_is_exit_code_1(frazil: Frazil, tmp_path: Path) -> None:
    create(frazil)
    (tmp_path / "cut").write_bytes(request(frazil).content[:-1])
    answer = frazil("inspect", str(tmp_path / "cut"), "--json")
    assert answer.code == 1
    assert answer.object["epoch"] == 0
    assert "request_truncated" in answer.err


@pytest.mark.parametrize("content", [None, b"nothing that we know"])
def test_what_cannot_be_inspected_is_one_line_with_the_name(
    frazil: Frazil, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    answer = frazil("inspect", str(file))
    assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1)
    assert str(file) in answer.err


# --- Quarantine ----------------------------------------------------------------------------------


def test_quarantined_requests_are_listed_with_reason_and_advice(frazil: Frazil) -> None:
    create(frazil)
    key = frazil.quarantine(request(frazil), "path_not_allowed", "it is not below the table")
    (line,) = frazil("quarantine", "list", "--json").lines
    assert (line["key"], line["table"], line["reason"]) == (key, "db.flights", "path_not_allowed")
    assert line["message"] == "it is not below the table"
    assert line["advice"]


def test_a_request_that_cannot_be_read_is_listed_by_the_name_of_its_table(frazil: Frazil) -> None:
    create(frazil)
    frazil.quarantine(request(frazil), "unsupported")
    sealed = build_request(frazil.load(), epoch=7)

    async def work(parts: Parts) -> None:
        record = QuarantineRecord(
            key=sealed.key, reason="request_malformed", message="", quarantined_at_ms=0
        )
        await parts.quarantine.put(record, b"{")

    frazil.with_parts(work)
    lines = frazil("quarantine", "list", "--json", "--table", "db.flights").lines
    assert [line["table"] for line in lines] == ["db.flights"] * 2
    assert {line["reason"] for line in lines} == {"unsupported", "request_malformed"}


@pytest.mark.parametrize(
    ("filters", "epochs"),
    [
        ((), [1, 2, 3]),
        (("--producer", "other"), [3]),
        (("--code", "unsupported"), [2]),
        (("--reason", "unsupported"), [2]),
        (("--table", "db.flights"), [1, 2, 3]),
        (("--table", "db.none"), []),
        (("--producer", "other", "--code", "unsupported"), []),
    ],
)
def test_the_list_is_filtered(frazil: Frazil, filters: tuple[str, ...], epochs: list[int]) -> None:
    create(frazil)
    frazil.quarantine(request(frazil, epoch=1), "table_unknown")
    frazil.quarantine(request(frazil, epoch=2), "unsupported")
    frazil.quarantine(request(frazil, epoch=3, producer="other"), "table_unknown")
    lines = frazil("quarantine", "list", "--json", *filters).lines
    assert sorted(line["epoch"] for line in lines) == epochs


def test_show_tells_why_what_to_do_and_what_is_in_it(frazil: Frazil) -> None:
    create(frazil)
    sealed = request(frazil)
    frazil.quarantine(sealed, "table_unknown", "there is no such table")
    answer = frazil("quarantine", "show", str(sealed.request.attempt)[:8])
    for text in ("table_unknown", "there is no such table", "then replay", "query-1", ".parquet"):
        assert text in answer.out
    assert "2027-01-15 08:00:00Z" in answer.out
    lines = frazil("quarantine", "show", sealed.request.inbox_key, "--json").lines
    assert [line["kind"] for line in lines] == [
        "quarantine-record",
        "commit-request",
        "manifest",
        "manifest-entry",
    ]
    assert lines[0]["advice"]


@pytest.mark.parametrize("inline", [False, True])
def test_show_lists_the_first_paths_and_counts_the_rest(frazil: Frazil, inline: bool) -> None:
    create(frazil)
    sealed = build_request(frazil.load(), files_count=25)
    paths = list(data_files_of(sealed, ()))
    if inline:
        files = [{"file-path": path, "record-count": 10} for path in paths]
        line = changed_line(sealed.request, files=tuple(files), manifests=())
        sealed = seal_request(line, [])
    key = frazil.quarantine(sealed, "table_unknown", has_files=False)
    out = frazil("quarantine", "show", key).out
    assert (len(paths), sum(path in out for path in paths)) == (25, 20)
    assert "the first 20 of 25, 5 more with --json" in out
    told = frazil("quarantine", "show", key, "--json").out
    assert all(path in told for path in paths)


def test_a_reason_of_another_version_is_shown_without_advice(frazil: Frazil) -> None:
    create(frazil)
    frazil.quarantine(request(frazil), "of_the_future")
    assert frazil("quarantine", "list", "--json").object["advice"] == ""


def test_replayed_requests_are_outstanding_again(frazil: Frazil) -> None:
    create(frazil)
    first = frazil.quarantine(request(frazil, epoch=1), "table_unknown")
    second = frazil.quarantine(request(frazil, epoch=2), "unsupported")
    answer = frazil("quarantine", "replay", "--all", "--code", "unsupported")
    assert (answer.code, answer.out) == (0, second + "\n")
    assert list(map(published_key, frazil.outstanding())) == [second]
    assert frazil.quarantined() == [first]


def test_an_unreadable_request_is_not_replayed_and_the_others_are(frazil: Frazil) -> None:
    create(frazil)
    broken = request(frazil, epoch=1)
    broken = EncodedRequest(broken.request, broken.content[:-1], broken.body)
    kept = frazil.quarantine(broken, "request_truncated", has_files=False)
    replayed = frazil.quarantine(request(frazil, epoch=2), "table_unknown")
    answer = frazil("quarantine", "replay", "--all")
    assert (answer.code, answer.out) == (1, replayed + "\n")
    assert f"{kept} stays in quarantine" in answer.err
    assert frazil.quarantined() == [kept]


def test_a_request_whose_data_files_are_gone_is_not_replayed(frazil: Frazil) -> None:
    create(frazil)
    sealed = request(frazil)
    key = frazil.quarantine(sealed, "table_unknown", has_files=False)
    answer = frazil("quarantine", "replay", key)
    assert (answer.code, answer.out) == (1, "")
    (name,) = data_files_of(sealed, ())
    assert f"its data file `{name}` does not exist" in answer.err
    assert frazil.quarantined() == [key]
    frazil.write_files(sealed)
    assert frazil("quarantine", "replay", key).out == key + "\n"


def test_a_request_whose_data_files_nobody_can_see_is_replayed_and_that_is_said(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(frazil)
    key = frazil.quarantine(request(frazil), "table_unknown")

    head = SchemeStorage.head

    async def refuse(self: SchemeStorage, location: str) -> ObjectInfo:
        if location.endswith(".parquet"):
            raise AccessError(f"`{location}`: access denied")
        return await head(self, location)

    monkeypatch.setattr(SchemeStorage, "head", refuse)
    answer = frazil("quarantine", "replay", key)
    assert (answer.code, answer.out) == (0, key + "\n")
    assert "could not check that its data files exist" in answer.err


def test_a_replay_without_its_queue_is_left_to_the_reconciler(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(frazil)
    key = frazil.quarantine(request(frazil), "table_unknown")
    monkeypatch.setenv("FRAZIL_QUEUE__URL", "redis://localhost:1/0")
    answer = frazil("quarantine", "replay", key)
    assert (answer.code, answer.out) == (0, key + "\n")
    assert "not announced" in answer.err
    assert list(map(published_key, frazil.outstanding())) == [key]


def test_discarding_says_what_it_removes_and_removes_it(frazil: Frazil) -> None:
    create(frazil)
    gone = frazil.quarantine(request(frazil, epoch=1), "table_unknown")
    kept = frazil.quarantine(request(frazil, epoch=2), "table_unknown")
    answer = frazil("quarantine", "discard", gone, "--yes")
    assert (answer.code, answer.out) == (0, gone + "\n")
    assert "1 request for good" in answer.err
    assert frazil.quarantined() == [kept]


@pytest.mark.parametrize(("typed", "is_kept"), [("", True), ("n\n", True), ("y\n", False)])
def test_nothing_is_discarded_without_a_yes(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, typed: str, is_kept: bool
) -> None:
    create(frazil)
    key = frazil.quarantine(request(frazil), "table_unknown")
    (tmp_path / "typed").write_text(typed)
    with (tmp_path / "typed").open() as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        answer = frazil("quarantine", "discard", key)
    assert answer.code == (1 if is_kept else 0)
    assert frazil.quarantined() == ([key] if is_kept else [])


# --- The command itself --------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_are_exit_code_0(option: str) -> None:
    assert main([option]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("table", "list"),
        ("table", "show", "db.flights"),
        ("table", "schema", "db.flights"),
        ("table", "snapshots", "db.flights"),
        ("table", "history", "db.flights"),
        ("table", "files", "db.flights"),
        ("quarantine", "list"),
        ("status",),
    ],
)
def test_json_is_all_that_a_reading_command_prints(
    frazil: Frazil, arguments: tuple[str, ...]
) -> None:
    create(frazil)
    frazil.quarantine(request(frazil), "table_unknown")
    answer = frazil(*arguments, "--json")
    assert answer.code == 0
    assert answer.err == ""
    for line in answer.out.splitlines():
        assert isinstance(json.loads(line), dict)
