"""The command on a table bucket of S3 Tables: what it can, and what it refuses in a sentence."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.cli.commands import Frazil
from tests.support.cli.serving import DEADLINE_S, serving
from tests.support.servers.moto_server import MotoServer, TableBucket

pytestmark = pytest.mark.server

Opened = Callable[..., Frazil]


@pytest.fixture
def bucket(moto_server: MotoServer) -> TableBucket:
    return asyncio.run(moto_server.new_table_bucket())


@pytest.fixture
def opened(
    bucket: TableBucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Opened:
    """Return the command, with some of its properties replaced."""

    def open_with(**replaced: str) -> Frazil:
        options = bucket.options
        properties = {
            "TYPE": "s3tables",
            "WAREHOUSE": bucket.arn,
            "S3TABLES__ENDPOINT": options.endpoint_url,
            "S3__ENDPOINT": options.endpoint_url,
            "S3__PATH_STYLE_ACCESS": "true",
            "CLIENT__ACCESS_KEY_ID": options.access_key_id,
            "CLIENT__SECRET_ACCESS_KEY": options.secret_access_key,
            **replaced,
        }
        variables = {f"FRAZIL_CATALOG__{name}": value for name, value in properties.items()}
        return Frazil(tmp_path, monkeypatch, capsys, variables)

    return open_with


CREATE = ("table", "create", "db.flights", "--schema", "id long")


def test_check_proves_the_token_and_says_what_the_catalog_can_do(opened: Opened) -> None:
    frazil = opened()
    answer = frazil("catalog", "check", "--json")
    assert answer.code == 0, answer.err
    can = answer.object["capabilities"]
    assert can["kind"] == "S3 Tables"
    assert can["chooses-locations"] and can["maintains-tables"]
    assert not can["registers-tables"] and not can["drops-pointer-only"]
    assert {one["check"] for one in answer.object["checks"]} == {"open", "read", "swap", "inbox"}
    assert frazil("namespace", "list").lines == []


ABSENT = "arn:aws:s3tables:us-east-1:000000000001:bucket/absent"


@pytest.mark.parametrize("command", [("catalog", "check"), CREATE], ids=lambda one: one[0])
@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ({"WAREHOUSE": "s3://lake/warehouse"}, "expected the ARN of a table bucket"),
        ({"WAREHOUSE": ""}, "`warehouse` is empty: expected the ARN of a table bucket"),
        ({"WAREHOUSE": ABSENT}, f"there is no table bucket {ABSENT}"),
        ({"CLIENT__REGION": "eu-west-1"}, "`client.region` eu-west-1: the table bucket"),
    ],
    ids=["no-arn", "no-warehouse", "no-bucket", "another-region"],
)
def test_what_is_half_configured_ends_in_a_sentence_and_makes_nothing(
    opened: Opened, replaced: dict[str, str], said: str, command: tuple[str, ...]
) -> None:
    answer = opened(**replaced)(*command)
    assert answer.code != 0
    assert said in answer.out + answer.err
    assert "Traceback" not in answer.err


def test_committer_does_not_start_without_its_table_bucket(opened: Opened, tmp_path: Path) -> None:
    opened(WAREHOUSE=ABSENT)
    with serving(tmp_path, {"FRAZIL_QUEUE__URL": "none"}) as running:
        assert running.process.wait(DEADLINE_S) != 0
    assert f"there is no table bucket {ABSENT}" in running.log
    assert "Traceback" not in running.log


def test_location_and_foreign_metadata_are_refused_and_nothing_is_made(opened: Opened) -> None:
    frazil = opened()
    placed = frazil(*CREATE, "--location", "s3://lake/flights")
    assert placed.code != 0 and "leave the location out" in placed.err
    registered = frazil("table", "register", "db.flights", "s3://lake/a.metadata.json")
    assert registered.code != 0 and "takes no metadata file from elsewhere" in registered.err
    assert frazil("namespace", "list").lines == []


def test_table_is_neither_dropped_nor_purged_but_renamed(opened: Opened) -> None:
    frazil = opened()
    assert frazil(*CREATE).code == 0
    created = frazil.load()
    for refused in ("drop", "purge"):
        answer = frazil("table", refused, "db.flights", "--yes")
        assert answer.code != 0 and "deletes" in answer.err
        assert "files stay" not in answer.err
    assert frazil("table", "rename", "db.flights", "db.trains").code == 0
    assert frazil.load("db.trains").metadata_location == created.metadata_location


def test_table_whose_first_file_could_not_be_written_is_finished_by_the_next_create(
    opened: Opened,
) -> None:
    """The name has to be reserved before the service says where the file goes."""
    with closing(socket.create_server(("127.0.0.1", 0))) as closed:
        port = closed.getsockname()[1]
    failed = opened(S3__ENDPOINT=f"http://127.0.0.1:{port}")(*CREATE)
    assert failed.code != 0
    assert "db.flights is reserved: create the table again, which finishes it" in failed.err
    frazil = opened()
    shown = frazil("table", "show", "db.flights")
    assert shown.code != 0 and "the name is reserved, and the table never created" in shown.err
    assert "did you mean" not in shown.err
    assert frazil(*CREATE).code == 0
    assert frazil("table", "show", "db.flights").code == 0


def test_status_names_a_catalog_that_has_no_address_by_its_type(opened: Opened) -> None:
    answer = opened()("status", "--json")
    assert answer.object["catalog"] == {"uri": "s3tables", "tables": 0}
