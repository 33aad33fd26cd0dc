"""Without some extra each command is one sentence, which names it and what installs it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from committer.extras import Extra
from tests.support.cli.serving import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]
COMMANDS: Sequence[Sequence[str]] = (
    ("--version",),
    ("--help",),
    ("table", "create", "db.flights", "--schema", "id long"),
    ("table", "list"),
    ("table", "show", "db.flights"),
    ("table", "files", "db.flights", "--json"),
    ("table", "inspect", "db.flights", "--kind", "snapshots", "--arrow", "out.arrow"),
    ("table", "plan", "db.flights"),
    ("table", "orphans", "db.flights"),
    ("table", "accept", "db.flights", "--yes"),
    ("inspect", "nothing"),
    ("inspect", "s3://bucket/nothing"),
    ("quarantine", "list"),
    ("quarantine", "show", "a"),
    ("producer", "list", "db.flights"),
    ("key", "new", "a"),
    ("status",),
    ("demo",),
    # Without the extra `embedded` there is no queue server to start; with it, none of these runs.
    ("serve",),
)
RUN_ALL = "\n".join(f"run(*{tuple(command)!r})" for command in COMMANDS)


def run(
    program: str,
    home: Path,
    extras: Sequence[str],
    *,
    shown: Sequence[str] = (),
    without: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return the answers of an installation with these extras."""
    asked = {"extras": extras, "with": shown, "without": without, "program": program}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.cli.installation", json.dumps(asked)],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "FRAZIL_HOME": str(home / "home"),
            "FRAZIL_SERVICE__HTTP_PORT": "0",
            "PATH": "",
            **(settings or {}),
        },
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def extra_named(answer: Mapping[str, Any]) -> str:
    """Return the extra that an answer names as missing, in its only line."""
    found = re.fullmatch(
        r"frazil: .* `.+ -m pip install -e '?/.*\[(\w+)\]'?`.*\n", str(answer["err"])
    )
    assert found, answer
    assert (answer["code"], answer["out"]) == (2, ""), answer
    return found[1]


@pytest.mark.parametrize("extras", ["", "spark", "aws,embedded,format"])
def test_without_the_extra_of_the_service_each_command_says_so(extras: str, tmp_path: Path) -> None:
    answers = run(RUN_ALL, tmp_path, extras.split(","))
    assert [extra_named(one) for one in answers] == ["service"] * len(COMMANDS)


def test_with_the_extra_of_the_service_each_command_works_or_names_one_more(tmp_path: Path) -> None:
    answers = run(RUN_ALL, tmp_path, ["service"])
    lacking = {one["command"][0]: extra_named(one) for one in answers if one["code"] == 2}
    arrow = next(one for one in answers if "--arrow" in one["command"])
    assert lacking == {"inspect": "aws", "table": "spark", "demo": "demo", "serve": "embedded"}
    assert lacking["table"] == extra_named(arrow)
    assert "Traceback" not in "".join(one["err"] for one in answers)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "module",
    ["redis", "sqlalchemy"],
)
def test_a_package_that_went_is_named_by_each_command_that_needs_it(
    module: str, tmp_path: Path
) -> None:
    answers = run(RUN_ALL, tmp_path, ["service"], without=[module])
    naming = [one for one in answers if f"`{module}`" in one["err"]]
    for one in answers:
        assert one["code"] in (0, 1, 2), one
        assert "Traceback" not in one["err"] and "internal error" not in one["err"], one
    assert naming
    assert all(one["code"] == 2 for one in naming)


@pytest.mark.parametrize(
    "settings",
    [
        {"FRAZIL_CATALOG__URI": "dynamodb://", "FRAZIL_QUEUE__URL": "none"},
        {"FRAZIL_INBOX": "s3://bucket/requests", "FRAZIL_QUEUE__URL": "none"},
    ],
)
def test_settings_that_need_aws_name_its_extra(settings: dict[str, str], tmp_path: Path) -> None:
    commands = [
        command
        for command in COMMANDS
        if command[0] in ("serve", "table") and command[1:2] not in (("accept",), ("inspect",))
    ]
    program = "\n".join(f"run(*{tuple(command)!r})" for command in commands)
    if "FRAZIL_INBOX" in settings:
        program = "run('serve')\nrun('quarantine', 'list')"
    answers = run(program, tmp_path, ["service"], settings=settings)
    assert {extra_named(one) for one in answers} == {"aws"}


# --- On Spark ------------------------------------------------------------------------------------

WRITE = """
from pyspark.sql.types import LongType, StructField, StructType
from committer.errors import SettingsError
from pyspark_frazil import DefaultSource
import json
schema = StructType([StructField("id", LongType())])
for make in ("writer", "streamWriter"):
    try:
        getattr(DefaultSource({"path": "db.flights"}), make)(schema, False)
    except Exception as error:  # Spark shows its cause first
        assert isinstance(error.__cause__, SettingsError), error.__cause__
        print(json.dumps({"code": 2, "out": "", "err": f"frazil: {error.__cause__}\\n"}))
"""


@pytest.mark.parametrize("module", ["pyarrow", "redis", "sqlalchemy"])
def test_a_driver_without_a_package_says_which_extra_brings_it(module: str, tmp_path: Path) -> None:
    uri = {"FRAZIL_CATALOG__URI": "postgresql://host/x", "FRAZIL_INBOX": "file:///x"}
    shown = ["pyspark", "py4j"]
    answers = run(WRITE, tmp_path, ["spark"], shown=shown, without=[module], settings=uri)
    assert [extra_named(one) for one in answers] == ["spark", "spark"]
    assert f"format `frazil` needs the package `{module}`" in answers[0]["err"]


def test_a_driver_with_a_table_on_s3_names_the_extra(tmp_path: Path) -> None:
    settings = {"FRAZIL_INBOX": "s3://bucket/x", "FRAZIL_CATALOG__URI": "dynamodb://"}
    shown = ["pyspark", "py4j"]
    answers = run(WRITE, tmp_path, ["spark"], shown=shown, settings=settings)
    assert [extra_named(one) for one in answers] == ["aws", "aws"]


# --- The command that is advised -----------------------------------------------------------------

HINT = "import sys; sys.path.insert(0, sys.argv[1])\nfrom committer.extras import install_hint\n"


@pytest.mark.parametrize(
    ("source", "advised"),
    [
        (
            '{"url": "file://{site}/frazil-0.whl"}',
            "{site}/frazil-0.whl[aws]",
        ),
        ('{"url": "https://host/frazil.whl"}', "frazil[aws] @ https://host/frazil.whl"),
        ('{"url": "file:///no/longer/there.whl"}', "in a clone of Frazil"),
        ("{}", "in a clone of Frazil"),
        (None, "in a clone of Frazil"),
    ],
)
def test_the_advice_names_what_frazil_was_installed_from(
    source: str | None, advised: str, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    (site / "committer").mkdir(parents=True)
    for name in ("__init__", "errors", "extras"):
        shutil.copy(REPOSITORY / f"committer/{name}.py", site / "committer")
    (site / "frazil-0.whl").touch()
    about = site / "frazil-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: frazil\nVersion: 0.1.0\n")
    if source is not None:
        (about / "direct_url.json").write_text(source.replace("{site}", str(site)))
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", HINT + "print(install_hint('aws'))", str(site)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert advised.replace("{site}", str(site)) in ended.stdout
    assert "pip install" in ended.stdout


PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
SOURCES = [*(REPOSITORY / "committer").rglob("*.py"), *(REPOSITORY / "workers").rglob("*.py")]
ADVISED = re.compile(r"pip install ((?:-e )?'[^'{]+'|[\w.-]+==[\w.]+)")


def test_each_install_command_of_the_pages_and_messages_names_what_there_is() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wheel = f"frazil-{project['version']}-py3-none-any.whl"
    advised = [one for file in (*PAGES, *SOURCES) for one in ADVISED.findall(file.read_text())]
    assert len(advised) >= 6
    for command in advised:
        target, _, named = command.removeprefix("-e ").strip("'").rstrip("]").partition("[")
        if "==" in target:
            assert target in extras["demo"], command
        else:
            assert target in (".", wheel), command
            assert set(filter(None, named.split(","))) <= extras.keys(), command
    assert set(get_args(Extra)) <= extras.keys()
