"""Completion in a shell, when its user presses Tab."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli.commands import Frazil
from tests.support.cli.serving import REPOSITORY


def completed(home: Path, line: str, shell: str = "bash") -> list[str]:
    """Return the completions of a line's last word."""
    asked = {
        "_FRAZIL_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": line,
    }
    ended = subprocess.run(
        [sys.executable, "-m", "committer"],
        cwd=REPOSITORY,
        env={**os.environ, "FRAZIL_HOME": str(home), "FRAZIL_QUEUE__URL": "none", **asked},
        capture_output=True,
        text=True,
    )
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.mark.thorough
def test_commands_options_and_tables_are_completed(frazil: Frazil, tmp_path: Path) -> None:
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    assert completed(tmp_path, "frazil ta") == ["table"]
    assert completed(tmp_path, "frazil serve --ho") == ["--home"]
    for command in ("table show", "table files", "table set", "producer list"):
        assert completed(tmp_path, f"frazil {command} db") == ["db.flights"], command
    assert completed(tmp_path, "frazil table show x") == []


@pytest.mark.thorough
def test_a_home_without_a_catalog_completes_nothing_and_stays_empty(tmp_path: Path) -> None:
    assert completed(tmp_path / "none", "frazil table show d") == []
    assert not (tmp_path / "none").exists()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("shell", "begins"),
    [
        ("bash", "_frazil_completion() {"),
        ("zsh", "#compdef frazil"),
        ("fish", "complete --command"),
    ],
)
def test_a_script_for_each_shell_can_be_shown(tmp_path: Path, shell: str, begins: str) -> None:
    """The shell is named, as the one that runs the tests is found by its process, if there is one.

    Read when the command is made, so in a process of its own.
    """
    shown = subprocess.run(
        [sys.executable, "-m", "committer", "--show-completion", shell],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "FRAZIL_HOME": str(tmp_path),
            "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
        },
        capture_output=True,
        text=True,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.lstrip().startswith(begins)
