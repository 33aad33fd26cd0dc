"""This Python as it would be with some extras of Frazil alone: hides every other package.

    python -m tests.support.cli.installation '{"extras": ["service"], "program": "…"}'

runs a program in it. In the program, `run("table", "list")` runs a command and prints what came of
it as a JSON line.
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, MetadataPathFinder
from io import StringIO
from pathlib import Path
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRAS = re.compile(r"\[([^]]*)\]")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def modules_of(extras: Iterable[str]) -> set[str]:
    """Return the installed top-level modules that an installation with these extras has."""
    found: set[str] = set()
    _add("frazil", frozenset(extras), found, set())
    by_module = metadata.packages_distributions().items()
    return {module for module, names in by_module if any(_normal(one) in found for one in names)}


def _add(
    name: str, extras: frozenset[str], found: set[str], seen: set[tuple[str, frozenset[str]]]
) -> None:
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    try:
        required = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    found.add(name)
    for text in required:
        requirement, _, marker = text.partition(";")
        wanted = re.search(r"""extra\s*==\s*['"]([^'"]+)['"]""", marker)
        if wanted is not None and wanted[1] not in extras:
            continue
        match, of = _NAME.match(requirement), _EXTRAS.search(requirement)
        assert match is not None, text
        _add(_normal(match[0]), frozenset(of[1].split(",")) if of else frozenset(), found, seen)


class _Hiding:
    """Finds what `PathFinder` finds, without the packages that are hidden."""

    def __init__(self, shown: set[str]) -> None:
        self._shown = shown
        self._hidden_in = tuple(
            {str(Path(one)) for one in sys.path if "site-packages" in one}
            | {sysconfig.get_paths()["purelib"]}
        )

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path)
        top = name.partition(".")[0]
        places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
        is_package = any(place and place.startswith(self._hidden_in) for place in places)
        return None if is_package and top not in self._shown else spec

    def find_distributions(self, *context: Any) -> Iterable[Distribution]:
        """Find distributions as usual: no code asks for those of a hidden package."""
        return MetadataPathFinder.find_distributions(*context)

    def invalidate_caches(self) -> None:
        PathFinder.invalidate_caches()


def hide_all_but(shown: set[str]) -> None:
    """Hide all other packages from imports."""
    sys.meta_path[:] = [
        _Hiding(shown) if finder is PathFinder else finder for finder in sys.meta_path
    ]


def run(*arguments: str) -> None:
    """Run one command; print its exit code and output."""
    from committer.__main__ import main

    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    said = {"command": arguments, "code": code, "out": out.getvalue(), "err": err.getvalue()}
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    hide_all_but((modules_of(asked["extras"]) | set(asked["with"])) - set(asked["without"]))
    exec(asked["program"], {"run": run})
