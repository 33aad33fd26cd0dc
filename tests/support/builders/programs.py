"""Programs of tests that no package of Python brings: Azurite by npm, versitygw from its Go source,
Prometheus' promtool from the distribution's package.

Each is fetched once into `.cache`, by one process at a time. What npm fetches is pinned with its
hashes by `tests/native/azurite`; Go compares a module with its public checksum database.
`python -m tests.support.builders.programs azurite` fetches one ahead of the tests.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.builders.fixtures import CACHE
from tests.support.builders.jars import NATIVE, NotHereError

AZURITE = "3.37.0"
VERSITYGW = "v1.8.0"
_INSTALL_S_MAX = 300.0
# Both cores of a small machine, and nothing compiled before.
_BUILD_S_MAX = 900.0


def azurite() -> list[str]:
    """Return the command of Azurite's blob service.

    Its telemetry and its database drivers, 300 of 365 MB, are replaced by an empty package: the
    tests use neither. Errors: `NotHereError`.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NotHereError("Azurite needs Node and npm, which install it")

    def install(folder: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(NATIVE / "azurite" / name, folder)
        quiet = ("--no-audit", "--no-fund", "--loglevel=error")
        command = [npm, "ci", "--omit=dev", "--ignore-scripts", *quiet, "--prefix", str(folder)]
        _run(command, dict(os.environ), _INSTALL_S_MAX)

    folder = _cached(f"azurite-{AZURITE}", install)
    return [node, str(folder / "node_modules/azurite/dist/src/blob/main.js")]


def versitygw() -> Path:
    """Return the program versitygw, an S3 server; its first build takes minutes.

    Errors: `NotHereError`.
    """
    go = shutil.which("go")
    if go is None:
        raise NotHereError("versitygw needs Go 1.24 or newer, which builds it")

    def build(folder: Path) -> None:
        source = f"github.com/versity/versitygw/cmd/versitygw@{VERSITYGW}"
        _run([go, "install", "-p", "1", source], os.environ | {"GOBIN": str(folder)}, _BUILD_S_MAX)

    return _cached(f"versitygw-{VERSITYGW}", build) / "versitygw"


def promtool() -> Path:
    """Return promtool, which tests alert rules: of the PATH, or else of Debian's package
    `prometheus`, which is unpacked and not installed. Errors: `NotHereError`.
    """
    installed = shutil.which("promtool")
    if installed is not None:
        return Path(installed)
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise NotHereError("promtool is not here: install Prometheus")

    def unpack(folder: Path) -> None:
        download = ["apt-get", "download", "--quiet", "prometheus"]
        try:
            _run(download, dict(os.environ), _INSTALL_S_MAX, folder)
        except NotHereError:
            # A machine may have no list of packages yet, or an old one.
            _run(["apt-get", "update", "--quiet"], dict(os.environ), _INSTALL_S_MAX)
            _run(download, dict(os.environ), _INSTALL_S_MAX, folder)
        (package,) = folder.glob("prometheus_*.deb")
        _run(["dpkg", "-x", str(package), str(folder)], dict(os.environ), _INSTALL_S_MAX)
        package.unlink()

    return _cached("promtool", unpack) / "usr/bin/promtool"


def _run(
    command: list[str],
    environment: dict[str, str],
    timeout_s: float,
    folder: Path | None = None,
) -> None:
    """Run an installer. Errors: `NotHereError` with the end of what it said."""
    try:
        subprocess.run(
            command,
            env=environment,
            cwd=folder,
            check=True,
            timeout=timeout_s,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except (subprocess.SubprocessError, OSError) as error:
        said = str(getattr(error, "output", None) or "")[-500:]
        raise NotHereError(f"`{' '.join(command)}` failed: {error} {said}") from error


def _cached(name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of this name in the cache; it is made elsewhere, and appears whole."""
    CACHE.mkdir(exist_ok=True)
    # npm installs nothing into a folder that is named through a symbolic link.
    cache = CACHE.resolve()
    folder = cache / name
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as temporary:
                fresh = Path(temporary) / name
                fresh.mkdir()
                make(fresh)
                fresh.rename(folder)
    return folder


def main(names: list[str]) -> None:
    for name in names:
        try:
            {"azurite": azurite, "promtool": promtool, "versitygw": versitygw}[name]()
        except NotHereError as error:
            # The tests that need it say so too, and are skipped.
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
