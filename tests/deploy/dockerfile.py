"""A Dockerfile as data, and its steps as shell commands on a root file system of a test's own.

Understands what our Dockerfile uses; what it does not know is an error, never skipped.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCKERFILE = ROOT / "Dockerfile"


@dataclass(frozen=True, slots=True)
class Instruction:
    """`name` in capitals; `value` is the rest, with joined lines."""

    name: str
    value: str


@dataclass(slots=True)
class Stage:
    """One `FROM` and what follows. `name` is empty for the last one."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, name: str) -> list[str]:
        """Return the values of all instructions of a name."""
        return [one.value for one in self.instructions if one.name == name]

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that `ENV` sets."""
        pairs = (pair for value in self.all("ENV") for pair in shlex.split(value))
        return dict(pair.split("=", 1) for pair in pairs)


def instructions(text: str) -> Iterator[Instruction]:
    """Parse the instructions, without comments, also those between joined lines."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    for line in filter(None, map(str.strip, joined.splitlines())):
        name, _, value = line.partition(" ")
        yield Instruction(name.upper(), value.strip())


def stages(text: str) -> list[Stage]:
    """Parse the stages, with the defaults of `ARG` filled in."""
    found: list[Stage] = []
    arguments: dict[str, str] = {}
    for one in instructions(text):
        if one.name == "ARG":
            name, _, default = one.value.partition("=")
            arguments[name] = default
        elif one.name == "FROM":
            base, _, name = one.value.partition(" AS ")
            for argument, default in arguments.items():
                base = base.replace(f"${{{argument}}}", default)
            found.append(Stage(base, name))
        else:
            found[-1].instructions.append(one)
    return found


def copied(stage: Stage) -> list[tuple[str, list[str], str]]:
    """Return for each `COPY` the stage copied from or nothing, the sources, and the target."""
    found = []
    for value in stage.all("COPY"):
        words = value.split()
        origin = ""
        if words[0].startswith("--from="):
            origin = words.pop(0).removeprefix("--from=")
        found.append((origin, words[:-1], words[-1]))
    return found


def replayed(stage: Stage, root: Path, context: Path, others: dict[str, Path], *, path: str) -> str:
    """Return a shell script that does the stage's steps below `root`, as a build would.

    `root` has a base system already, in which `path` finds the commands; `context` and the other
    stages' roots are folders outside.
    """
    script, folder, environment = ["set -e"], "/", {"PATH": path}
    copies = iter(copied(stage))
    for one in stage.instructions:
        match one.name:
            case "ENV":
                environment |= dict(pair.split("=", 1) for pair in shlex.split(one.value))
            case "WORKDIR":
                folder = one.value
                script.append(f"mkdir -p {root}{folder}")
            case "COPY":
                origin, sources, target = next(copies)
                start = others[origin] if origin else context
                script += (_copy(start / s.lstrip("/"), root, folder, target) for s in sources)
            case "RUN":
                variables = " ".join(f"{n}={shlex.quote(v)}" for n, v in environment.items())
                command = f"cd {folder} && {one.value}"
                script.append(f"chroot {root} env {variables} sh -ec {shlex.quote(command)}")
            case "LABEL" | "EXPOSE" | "USER" | "ENTRYPOINT" | "CMD":
                pass
            case unknown:
                raise AssertionError(f"the replay does not know {unknown}")
    return "\n".join(script)


def _copy(source: Path, root: Path, folder: str, target: str) -> str:
    """Copy a folder's content into the target, a file to it or, with a slash, into it."""
    place = root / folder.lstrip("/") / target.lstrip("/")
    if target.startswith("/"):
        place = root / target.lstrip("/")
    slash = "/" if target.endswith("/") else ""
    return (
        f"if [ -d {source} ]; then mkdir -p {place} && cp -a {source}/. {place}/;"
        f" else cp -a {source} {place}{slash}; fi"
    )
