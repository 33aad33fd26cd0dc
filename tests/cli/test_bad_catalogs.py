"""A catalog that cannot be used, of every kind, through the command line: one sentence that names
the setting and the remedy, an exit code that is not 0, and nothing half made.

Servers that refuse are one program of ours that gives every request the same answer. It proves what
Frazil says, and nothing about real servers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.cli.commands import Answer, Frazil
from tests.support.cli.serving import DEADLINE_S, serving
from tests.support.servers.postgres_server import PostgresServer

CREATE = ("table", "create", "db.t", "--schema", "id long")
# A reader of a terminal with 80 columns still reads so much: seven lines.
_CHARS_MAX = 560
# A server of the standard library notices its end at its next look.
_POLL_S = 0.01
_DOWN = "http://127.0.0.1:9"
_KEYS = {
    "client.region": "us-east-1",
    "client.access-key-id": "AKIA0",
    "client.secret-access-key": "s",
}
_BUCKET = "arn:aws:s3tables:us-east-1:111122223333:bucket/lake"
_NO_COPY = {"hadoop.no-other-writers": "true"}


@dataclass(frozen=True, slots=True)
class Case:
    """Properties of a catalog, and words that its error has. `{url}` stands for a server."""

    properties: Mapping[str, str]
    said: tuple[str, ...]
    status: int = 0
    """Of the server's answers; 0: there is no server."""
    body: str = ""

    @classmethod
    def of_aws(cls, code: str, properties: Mapping[str, str], *said: str) -> Case:
        body = json.dumps({"__type": code, "message": f"the server says {code}"})
        return cls({**_KEYS, **properties}, said, 400, body)

    @classmethod
    def of_s3(cls, status: int, code: str, properties: Mapping[str, str], *said: str) -> Case:
        body = f"<Error><Code>{code}</Code><Message>the server says {code}</Message></Error>"
        return cls({**_KEYS, "s3.endpoint": "{url}", **properties}, said, status, body)

    @classmethod
    def of_rest(cls, status: int, kind: str, *said: str, **properties: str) -> Case:
        error = {"message": f"the server says {kind}", "type": kind, "code": status}
        body = json.dumps({"error": error})
        return cls({"uri": "{url}", **properties}, said, status, body)


_URI, _TYPE = "setting `catalog.uri`", "setting `catalog.type`"
_WAREHOUSE = "setting `catalog.warehouse`"
_RUNS = "check that it runs, and that the setting is right"

DOWN = {
    "postgresql": Case({"uri": "postgresql://u@127.0.0.1:9/db"}, (_URI, "port 9", _RUNS)),
    "mariadb": Case({"uri": "mariadb://u@127.0.0.1:9/db"}, (_URI, "127.0.0.1", _RUNS)),
    "dynamodb": Case(
        {**_KEYS, "uri": "dynamodb://iceberg", "dynamodb.endpoint": _DOWN}, (_URI, _DOWN, _RUNS)
    ),
    "glue": Case({**_KEYS, "type": "glue", "glue.endpoint": _DOWN}, (_TYPE, _DOWN, _RUNS)),
    "s3tables": Case(
        {**_KEYS, "type": "s3tables", "warehouse": _BUCKET, "s3tables.endpoint": _DOWN},
        (_WAREHOUSE, _DOWN, _RUNS),
    ),
    "rest": Case({"uri": _DOWN}, (_URI, _DOWN, _RUNS)),
    "rest, its token server": Case(
        {"uri": _DOWN, "credential": "id:secret"}, (_URI, "/v1/oauth/tokens", _RUNS)
    ),
    "hive": Case({"uri": "thrift://127.0.0.1:9"}, (_URI, "127.0.0.1:9", _RUNS)),
    "hadoop on S3": Case(
        {**_KEYS, **_NO_COPY, "type": "hadoop", "warehouse": "s3://b/lake", "s3.endpoint": _DOWN},
        (_WAREHOUSE, _DOWN),
    ),
}
HALF = {
    "sql without an address": Case({"type": "sql"}, (_URI, "`uri` is empty", "postgresql://")),
    "sqlite in memory": Case({"uri": "sqlite://"}, (_URI, "needs a file")),
    "rest without an address": Case({"type": "rest"}, (_URI, "`uri` is empty", "https://HOST")),
    "rest without a host": Case({"uri": "http://"}, (_URI, "expected http://HOST")),
    "rest signed, without a region": Case(
        {"uri": _DOWN, "rest.sigv4-enabled": "true"}, (_URI, "set rest.signing-region")
    ),
    "hive without an address": Case({"type": "hive"}, (_URI, "`uri` is empty", "thrift://HOST")),
    "hive without a host": Case({"uri": "thrift://"}, (_URI, "expected `thrift://HOST:PORT`")),
    "glue without a region": Case({"type": "glue"}, (_TYPE, "set client.region")),
    "glue with half a key": Case(
        {"type": "glue", "client.region": "us-east-1", "client.access-key-id": "x"},
        (_TYPE, "`client.access-key-id` is set without `client.secret-access-key`"),
    ),
    "dynamodb without a region": Case({"uri": "dynamodb://iceberg"}, (_URI, "set client.region")),
    "dynamodb with half a key": Case(
        {"uri": "dynamodb://iceberg", "client.region": "x", "dynamodb.secret-access-key": "x"},
        (_URI, "`dynamodb.secret-access-key` is set without `dynamodb.access-key-id`"),
    ),
    "dynamodb without a key": Case(
        {"uri": "dynamodb://iceberg", "client.region": "x", "dynamodb.endpoint": _DOWN},
        (_URI, "no AWS credentials were found", "set `client.profile-name`"),
    ),
    "s3tables without a bucket": Case({**_KEYS, "type": "s3tables"}, (_WAREHOUSE, "arn:aws")),
    "s3tables with a folder": Case(
        {**_KEYS, "type": "s3tables", "warehouse": "s3://b/lake"}, (_WAREHOUSE, "arn:aws")
    ),
    "unknown type": Case({"type": "nessie"}, (_TYPE, "expected one of `dynamodb`")),
    "unknown scheme": Case({"uri": "foo://host"}, (_URI, "expected one of `dynamodb`")),
    "oracle": Case({"type": "sql", "uri": "oracle://h/db"}, (_URI, "Oracle is not supported")),
}
REFUSED = {
    "dynamodb": Case.of_aws(
        "AccessDeniedException",
        {"uri": "dynamodb://iceberg", "dynamodb.endpoint": "{url}"},
        *(_URI, "dynamodb:DescribeTable", "AccessDeniedException"),
    ),
    "glue": Case.of_aws(
        "AccessDeniedException",
        {"type": "glue", "glue.endpoint": "{url}"},
        *("glue:", "lacks the permission", "AccessDeniedException"),
    ),
    "s3tables": Case.of_aws(
        "ForbiddenException",
        {"type": "s3tables", "warehouse": _BUCKET, "s3tables.endpoint": "{url}"},
        "s3tables:",
    ),
    "rest, without a token": Case.of_rest(401, "NotAuthorizedException", _URI, "`token`"),
    "rest, forbidden": Case.of_rest(403, "ForbiddenException", _URI, "403"),
    "hadoop on S3": Case.of_s3(
        403,
        "AccessDenied",
        {**_NO_COPY, "type": "hadoop", "warehouse": "s3://b/lake"},
        *(_WAREHOUSE, "s3://b/lake", "AccessDenied"),
    ),
}
MISSING = {
    "rest, unknown warehouse": Case.of_rest(
        404, "NoSuchWarehouseException", _URI, "`warehouse`", warehouse="no"
    ),
    "rest, a page of something else": Case({"uri": "{url}"}, (_URI,), 200, "<html>hello</html>"),
    "rest, nothing of the kind": Case({"uri": "{url}"}, (_URI,), 404, "not found"),
    "hadoop, no bucket": Case.of_s3(
        404,
        "NoSuchBucket",
        {**_NO_COPY, "type": "hadoop", "warehouse": "s3://b/lake"},
        *(_WAREHOUSE, "s3://b/lake", "NoSuchBucket"),
    ),
}
CASES = [
    pytest.param(
        case, id=f"{condition}: {name}", marks=() if condition == "half" else pytest.mark.thorough
    )
    for condition, cases in (
        ("down", DOWN),
        ("half", HALF),
        ("refused", REFUSED),
        ("missing", MISSING),
    )
    for name, case in cases.items()
]


@contextmanager
def answering(case: Case) -> Iterator[str]:
    """Start a server that gives every request the case's answer; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b"" if self.command == "HEAD" else case.body.encode()
            self.send_response(case.status)
            kind = "application/json" if case.body.startswith("{") else "text/html"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(_POLL_S,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def configure(patch: pytest.MonkeyPatch, properties: Mapping[str, str], url: str = "") -> None:
    for name, value in properties.items():
        variable = name.replace(".", "__").replace("-", "_").upper()
        patch.setenv(f"FRAZIL_CATALOG__{variable}", value.replace("{url}", url))


def errors_of(answer: Answer) -> list[str]:
    return [line for line in answer.err.splitlines() if line.startswith("frazil: ")]


def assert_clear(answer: Answer, said: tuple[str, ...]) -> None:
    """Assert that every line of the error is a sentence, and that the first has these words."""
    assert answer.code in (1, 2), answer
    errors = errors_of(answer)
    assert errors, answer
    for words in said:
        assert words in errors[0], (words, errors[0])
    assert answer.err.count("setting `catalog.") <= len(errors), answer.err  # none says it twice
    for error in errors:
        assert len(error) <= _CHARS_MAX, (len(error), error)
    for wrong in ("Traceback", "internal error", "unreadable", "``"):
        assert wrong not in answer.err, answer.err


@pytest.fixture(autouse=True)
def nothing_else_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither credentials of this machine, nor a service that would give some."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.parametrize("case", CASES)
def test_a_catalog_that_cannot_be_used_is_explained_and_nothing_is_made(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    with answering(case) as url:
        configure(monkeypatch, case.properties, url)
        checked = frazil("catalog", "check")
        created = frazil(*CREATE)
    assert_clear(checked, case.said)
    assert_clear(created, case.said)
    # But for the entry of the audit, where the catalog refuses what it was asked.
    made = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in made if path.parts[:2] != ("requests", "audit")] == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["rest without an address", "glue with half a key", "oracle"])
def test_a_committer_does_not_start_on_half_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = HALF[name]
    configure(monkeypatch, case.properties)
    with serving(tmp_path, {"FRAZIL_QUEUE__URL": "none"}) as committer:
        assert committer.process.wait(DEADLINE_S) == 2
        assert_clear(Answer(2, "", committer.log), case.said)


@pytest.mark.parametrize(
    "case",
    [
        Case({**_KEYS, "warehouse": "s3://b/lake", "s3.endpoint": _DOWN}, (_WAREHOUSE, _DOWN)),
        Case.of_s3(404, "NoSuchBucket", {"warehouse": "s3://b/lake"}, _WAREHOUSE, "NoSuchB"),
        Case.of_s3(403, "AccessDenied", {"warehouse": "s3://b/lake"}, _WAREHOUSE, "AccessD"),
    ],
    ids=["down", "missing", "refused"],
)
def test_a_table_whose_warehouse_cannot_be_used_leaves_no_namespace(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    frazil("namespace", "create", "other")
    with answering(case) as url:
        configure(monkeypatch, case.properties, url)
        assert_clear(frazil("table", "create", "a.b.t", "--schema", "id long"), case.said)
    listed = frazil("namespace", "list", "--json").lines
    assert [one["namespace"] for one in listed] == ["other"]


def test_a_table_that_cannot_be_registered_leaves_no_namespace(
    frazil: Frazil, tmp_path: Path
) -> None:
    frazil("namespace", "create", "other")
    absent = f"file://{tmp_path}/absent/metadata/00000-a.metadata.json"
    refused = frazil("table", "register", "new.t", absent)
    assert refused.code == 1
    assert absent in refused.err
    listed = frazil("namespace", "list", "--json").lines
    assert [one["namespace"] for one in listed] == ["other"]


def test_a_namespace_that_was_there_before_outlives_a_table_that_cannot_be_made(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    frazil("namespace", "create", "a")
    configure(monkeypatch, {**_KEYS, "warehouse": "s3://b/lake", "s3.endpoint": _DOWN})
    assert frazil("table", "create", "a.b.t", "--schema", "id long").code == 1
    listed = frazil("namespace", "list", "--json").lines
    assert [one["namespace"] for one in listed] == ["a"]


def test_a_migration_to_a_catalog_that_is_down_blames_no_setting_of_the_other(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    frazil(*CREATE)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", _DOWN)
    refused = frazil("table", "migrate", "db.t", "--to", "prod", "--yes")
    assert refused.code == 1
    assert f"{_DOWN}/v1/config" in refused.err
    assert "check that the catalogs `frazil` and `prod` run" in refused.err
    assert "setting" not in refused.err
    assert [one["table"] for one in frazil("table", "list", "--json").lines] == ["db.t"]


# --- A real PostgreSQL ---------------------------------------------------------------------------

_GRANTS = "GRANT {rights} ON iceberg_tables, iceberg_namespace_properties TO {user}"


@pytest.mark.server
@pytest.mark.parametrize(
    ("setting", "said"),
    [("synchronous_commit", "synchronous_commit"), ("default_transaction_read_only", "read-only")],
)
def test_a_database_on_which_a_commit_could_be_lost_or_made_by_none_is_refused(
    frazil: Frazil,
    monkeypatch: pytest.MonkeyPatch,
    postgres_server: PostgresServer,
    setting: str,
    said: str,
) -> None:
    database = postgres_server.new_database()
    value = "off" if setting == "synchronous_commit" else "on"
    postgres_server.execute("postgres", f"ALTER DATABASE {database} SET {setting} = {value}")
    configure(monkeypatch, {"uri": postgres_server.uri(database)})
    assert_clear(frazil(*CREATE), (_URI, said))
    tables = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'iceberg%'"
    assert postgres_server.execute(database, tables) == [(0,)]


@pytest.mark.server
@pytest.mark.parametrize("missing", ["SELECT", "INSERT", "UPDATE"])
def test_a_user_that_lacks_one_right_is_told_which_ones_it_needs(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, postgres_server: PostgresServer, missing: str
) -> None:
    database = postgres_server.new_database()
    configure(monkeypatch, {"uri": postgres_server.uri(database)})
    frazil("namespace", "create", "other")
    user = f"clerk_{database}"
    rights = ", ".join({"SELECT", "INSERT", "UPDATE", "DELETE"} - {missing})
    grants = _GRANTS.format(rights=rights, user=user)
    postgres_server.execute(database, f"CREATE ROLE {user} LOGIN; {grants}")
    configure(monkeypatch, {"uri": postgres_server.uri(database, user=user)})
    checked = frazil("catalog", "check")
    assert_clear(checked, (_URI, "grant the user SELECT, INSERT, UPDATE and DELETE"))
