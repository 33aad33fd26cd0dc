"""A small deliberate breakage of the committer, made in a copy of the tree."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
# Needed by tests that run in one process.
CACHE = ".cache"
COPIED = ("frazil", "committer", "workers", "pyspark_frazil", "tests", "docs", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Mutant:
    """`text` of the file at `path` becomes `instead`. `killers`: what must notice, the first that
    does is enough: arguments of pytest, or `SEEDS` (`seeds_from(n)`) for the simulation.
    """

    name: str
    path: str
    text: str
    instead: str
    killers: tuple[str, ...]

    def mutated(self, source: str) -> str:
        """Return the broken source. Errors: `ValueError` unless the text is there once."""
        found = source.count(self.text)
        if found != 1:
            raise ValueError(f"mutant `{self.name}`: {self.path} has its text {found} times")
        return source.replace(self.text, self.instead)

    def break_in(self, folder: Path) -> None:
        """Break the copy of the tree in a folder. Errors: as `mutated`."""
        path = folder / self.path
        path.write_text(self.mutated(path.read_text()))


def copy_tree(folder: Path) -> None:
    """Copy what git knows of, as it is now, into a new folder; servers and engines are shared."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *COPIED],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    (ROOT / CACHE).mkdir(exist_ok=True)
    (folder / CACHE).symlink_to(ROOT / CACHE)
