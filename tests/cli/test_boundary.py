"""Where a command ends: what goes wrong is a sentence and an exit code, never a traceback."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from committer.errors import InvariantError
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import REPOSITORY


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail each command that opens something with this error."""
    # First: a module that imports the function meanwhile would keep what it is replaced by.
    import committer.cli.app  # noqa: F401

    def raise_it() -> None:
        raise error

    monkeypatch.setattr("committer.cli.context.command_session.read_settings", raise_it)


# --- Errors of each kind -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (PermissionError(13, "Permission denied", "/x"), 2, "frazil: `/x`: Permission denied\n"),
        (OSError(28, "No space left on device"), 2, "frazil: No space left on device\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_of_the_machine_is_one_sentence(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    fail_with(error, monkeypatch)
    answer = frazil("table", "list")
    assert (answer.code, answer.out, answer.err) == (code, "", said)


@pytest.mark.parametrize("error", [InvariantError("so"), KeyError("so"), ModuleNotFoundError("so")])
def test_an_internal_error_says_where_its_trace_is(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fail_with(error, monkeypatch)
    answer = frazil("table", "list")
    (trace,) = tmp_path.glob("frazil-*.trace")
    assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1)
    assert f"internal error, please report it: {type(error).__name__}: " in answer.err
    assert str(trace) in answer.err
    assert "in raise_it" in trace.read_text()
    assert trace.stat().st_mode & 0o777 == 0o600


def test_a_trace_is_printed_on_demand(frazil: Frazil, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAZIL_DEBUG", "1")
    fail_with(KeyError("so"), monkeypatch)
    answer = frazil("table", "list")
    assert "in raise_it" in answer.err
    assert answer.err.endswith("frazil: internal error, please report it: KeyError: 'so'\n")


def test_a_trace_that_cannot_be_kept_is_not_promised(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/does/not/exist")
    fail_with(KeyError("so"), monkeypatch)
    assert "FRAZIL_DEBUG=1 prints its trace" in frazil("table", "list").err


# --- A process of its own ------------------------------------------------------------------------


def run(program: str, home: Path, before: Callable[[], None] | None = None) -> tuple[int, str]:
    """Run a program in a shell, in which `FRAZIL` is the command."""
    ended = subprocess.run(
        ["/bin/bash", "-c", program.replace("FRAZIL ", f"{sys.executable} -m committer ")],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "FRAZIL_HOME": str(home),
            "FRAZIL_QUEUE__URL": "none",
            "FRAZIL_SERVICE__HTTP_PORT": "0",
        },
        capture_output=True,
        text=True,
        preexec_fn=before,
    )
    return ended.returncode, ended.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["key new a", "--help", "--version"])
def test_a_reader_that_has_seen_enough_ends_it_quietly(tmp_path: Path, command: str) -> None:
    assert run(f"FRAZIL {command} | true; exit ${{PIPESTATUS[0]}}", tmp_path) in ((1, ""), (0, ""))


def test_a_full_disk_behind_stdout_is_a_sentence(tmp_path: Path) -> None:
    assert run("FRAZIL --help > /dev/full", tmp_path) == (2, "frazil: No space left on device\n")


def test_ctrl_c_while_a_command_starts_is_quiet(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; import committer.__main__ as command\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'committer.cli.app': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.exit(command.main(['table', 'list']))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True)
    # A shell sees 130 in both cases: ended by the signal, or on its behalf.
    assert ended.returncode in (128 + signal.SIGINT, -signal.SIGINT)
    assert ended.stderr == b""


# --- Settings files ------------------------------------------------------------------------------


def make_unreadable(path: Path, kind: str) -> str:
    """Create something other than a TOML file there; return what the error must contain."""
    match kind:
        case "a folder":
            path.mkdir()
            return "Is a directory"
        case "a pipe":
            os.mkfifo(path)
            return "it is a pipe, not a regular file"
        case "no text":
            path.write_bytes(b"[queue]\nurl = '\xff'\n")
            return "is not TOML: it is not UTF-8"
        case "no TOML":
            path.write_bytes(b"queue: none\n")
            return "is not TOML: "
        case "a loop":
            path.symlink_to(path)
            return "Too many levels of symbolic links"
        case "a device":
            path.symlink_to("/dev/zero")
            return "it is a device, not a regular file"
        case _:
            path.write_bytes(b"#" * (1 << 20) + b"\n")
            return "larger than 1048576 bytes"


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    "kind", ["a folder", "a pipe", "no text", "no TOML", "a loop", "a device", "large"]
)
def test_a_settings_file_that_cannot_be_read_is_a_sentence(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, named: bool
) -> None:
    path = tmp_path / "frazil.toml"
    said = make_unreadable(path, kind)
    if named:
        monkeypatch.setenv("FRAZIL_CONFIG", str(path))
    answer = frazil("table", "list")
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1), answer
    assert f"frazil: {path} " in answer.err
    assert said in answer.err


OTHER = 65534
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux",
    reason="needs the right to give a folder to another user, on Linux",
)


def without_rights_of_root() -> None:
    """Drop, from the next exec on, root's right to ignore the modes of files."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0  # PR_CAPBSET_DROP


@pytest.fixture
def home_of_another(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(0o700)
    os.chown(home, OTHER, OTHER)
    return home


@pytest.mark.thorough
@as_root
@pytest.mark.parametrize(
    "command",
    ["status", "table list", "table create db.x --schema 'id long'", "quarantine list", "serve"],
)
def test_the_home_of_another_user_is_a_sentence_with_a_remedy(
    home_of_another: Path, command: str
) -> None:
    code, said = run(f"FRAZIL {command}", home_of_another, without_rights_of_root)
    assert (code, said.count("\n")) == (2, 1), said
    assert "Permission denied" in said
    assert "FRAZIL_HOME" in said


@pytest.mark.thorough
@as_root
@pytest.mark.parametrize("command", ["table create db.x --schema 'id long'", "serve"])
def test_a_home_that_may_only_be_read_is_a_sentence_with_a_remedy(
    home_of_another: Path, command: str
) -> None:
    home_of_another.chmod(0o755)
    program = f"FRAZIL_QUEUE__URL=private {sys.executable} -m committer {command}"
    code, said = run(program, home_of_another, without_rights_of_root)
    assert (code, said.count("\n")) == (2, 1), said
    assert f"belongs to user {OTHER}" in said
    assert "FRAZIL_HOME" in said
