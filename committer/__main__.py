"""The `frazil` command: arguments in, exit code out.

0: done. 1: the command failed, or its object does not exist. 2: wrong usage or settings, a missing
extra, or no permission. 130: Ctrl-C. 143: SIGTERM, before there was anything to finish. The
commands are in `committer.cli`, one file for each group.
"""

from __future__ import annotations

import os
import sys

from committer.stop_signals import end_at_once, let_python_interrupt

TYPE_CHECKING = False  # without `typing`, which is large
if TYPE_CHECKING:
    from collections.abc import Sequence

_DEBUG = "FRAZIL_DEBUG"
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Each failure is one line on stderr; FRAZIL_DEBUG=1 adds the trace."""
    end_at_once()
    from committer.service.telemetry import json_stderr

    words = sys.argv[1:] if arguments is None else arguments
    if "serve" in words and json_stderr.is_asked_for():
        json_stderr.speak_json()
    try:
        return _main(words)
    finally:
        json_stderr.end_speaking()


def _main(arguments: Sequence[str]) -> int:
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. Buffered text must not be written again at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001  # the last place that can explain it
        code, text = _explain(error)
        _complain(text, error)
    return code


def _run(arguments: Sequence[str]) -> int:
    from committer.cli.app import app

    let_python_interrupt()
    try:
        app(args=arguments, prog_name="frazil")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def _explain(error: Exception) -> tuple[int, str]:
    """Return the exit code, and the message."""
    from committer.errors import AccessError, FrazilError, InvariantError, SettingsError
    from committer.extras import missing_package

    if isinstance(error, ModuleNotFoundError):
        missing = missing_package(error, "this command", "service")
        return (2, str(missing)) if missing else (1, _report(error))
    if isinstance(error, FrazilError) and not isinstance(error, InvariantError):
        return (2 if isinstance(error, SettingsError | AccessError) else 1), str(error)
    if isinstance(error, OSError) and error.strerror:
        where = f"`{os.fsdecode(error.filename)}`: " if error.filename else ""
        return 2, f"{where}{error.strerror}"
    return 1, _report(error)


def _complain(text: str, error: Exception) -> None:
    from committer.service.telemetry import json_stderr

    if os.environ.get(_DEBUG):
        from traceback import print_exception

        print_exception(error)
    if isinstance(sys.stderr, json_stderr.JsonStderr):
        json_stderr.emit("error", "process.failed", error=text)
    else:
        sys.stderr.write(f"frazil: {text}\n")


def _report(error: Exception) -> str:
    """Report an internal error: where its trace is."""
    from tempfile import NamedTemporaryFile
    from traceback import print_exception

    said = f"internal error, please report it: {type(error).__name__}: {error}"
    if os.environ.get(_DEBUG):
        return said
    try:
        with NamedTemporaryFile("w", prefix="frazil-", suffix=".trace", delete=False) as file:
            print_exception(error, file=file)
    except OSError:
        return f"{said} ({_DEBUG}=1 prints its trace)"
    return f"{said}; its trace is in `{file.name}` ({_DEBUG}=1 prints it here)"


if __name__ == "__main__":
    sys.exit(main())
