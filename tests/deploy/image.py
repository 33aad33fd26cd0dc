"""The image without an engine: the Dockerfile's own commands, run on a layer over this machine.

Each stage gets a root file system of its own: this machine's, read through an overlay that keeps
what is written in memory. All of it is in a mount namespace, so nothing here changes, and it ends
with its process. Needs root on Linux; without it the tests are skipped. Unlike in a real build, the
base system and the release of Python are this machine's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.dockerfile import DOCKERFILE, ROOT, Stage, copied, replayed, stages

READY = "the image is built"
PYTHON = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
_WRITABLE = ("/tmp", "/var/lib/frazil")


@dataclass(frozen=True, slots=True)
class Image:
    """A built image, as a process that holds it. `root` is its path in that process's mounts."""

    holder: int
    root: Path
    stage: Stage

    @property
    def user(self) -> str:
        (user,) = self.stage.all("USER")
        return user

    def command(self, *words: str, settings: Mapping[str, str] | None = None) -> list[str]:
        """Return a command line that runs `words` as the image's user, without any capability."""
        uid, gid = self.user.split(":")
        variables = self.stage.environment | dict(settings or {})
        return [
            *("nsenter", f"--mount=/proc/{self.holder}/ns/mnt", "chroot", str(self.root)),
            *("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"),
            *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
            *("env", "-i", *(f"{name}={value}" for name, value in variables.items())),
            *words,
        ]

    def run(
        self, *words: str, settings: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        command = self.command(*words, settings=settings)
        return subprocess.run(command, capture_output=True, text=True, timeout=60)


@contextmanager
def image(folder: Path) -> Iterator[Image]:
    """Build it below `folder`, an empty one; everything goes when the block ends."""
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("the image was not built: only root on Linux can make a root file system")
    found = stages(DOCKERFILE.read_text())
    roots = {stage.name: folder / (stage.name or "image") / "root" for stage in found}
    context = folder / "context"
    _make_context(found, context)
    path = f"{PYTHON.parent}:/usr/local/bin:/usr/bin:/bin"
    steps = (replayed(stage, roots[stage.name], context, roots, path=path) for stage in found)
    script = [
        *(_mounted(root) for root in roots.values()),
        *(f"{{ {step}\n}} >&2" for step in steps),
        _sealed(roots[""], found[-1].all("USER")[0]),
    ]
    log = folder / "log"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-ec", "\n".join(script)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as holder,
    ):
        try:
            assert holder.stdout
            said = holder.stdout.read()
            assert READY in said, log.read_text()[-4000:]
            yield Image(holder.pid, roots[""], found[-1])
        finally:
            holder.kill()


def _make_context(found: list[Stage], context: Path) -> None:
    """Make the context of a build: all copied files that git does not ignore."""
    names = [
        name for stage in found for origin, what, _ in copied(stage) if not origin for name in what
    ]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *names],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, context / name)


def _mounted(root: Path) -> str:
    """Mount an overlay over this machine, without the outputs of a build, but with a `python`.

    Pip's own settings (a mirror, a certificate) come with the environment.
    """
    above = root.parent
    return "\n".join(
        [
            f"mkdir -p {above}",
            f"mount -t tmpfs tmpfs {above}",
            f"mkdir {root} {above}/upper {above}/work",
            f"mount -t overlay overlay {root}"
            f" -o lowerdir=/,upperdir={above}/upper,workdir={above}/work",
            f"mount --rbind /dev {root}/dev",
            f"mount -t proc proc {root}/proc",
            f"cp /etc/resolv.conf /etc/hosts {root}/etc/",
            # In the overlay only: the image's user has to reach this machine's Python.
            *(f"chmod o+x {root}{parent}" for parent in PYTHON.parents),
            f"rm -rf {root}/opt/frazil {root}/opt/build {root}/src {root}/var/lib/frazil",
            f"ln -sf {PYTHON.name} {root}{PYTHON.parent}/python",
        ]
    )


def _sealed(root: Path, user: str) -> str:
    """Make the root read-only, with the mounts of a pod; then wait until the test is done."""
    return "\n".join(
        [
            f"mount -o remount,ro {root}",
            *(f"mount -t tmpfs -o size=64m tmpfs {root}{place}" for place in _WRITABLE),
            *(f"chown {user} {root}{place}" for place in _WRITABLE),
            f"echo {READY}",
            "exec >&-",
            "exec sleep infinity",
        ]
    )
