"""Profiles a process: sampled by py-spy while it works, told as shares of functions.

Only samples that hold the interpreter count, so waiting does not; what the kernel does for a
process (syncing a file, say) is in its CPU time, but not here.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_SAMPLES_A_SECOND = 200
_LONGEST_S = 600
_SHOWN = 30
_OURS = ("committer/", "workers/", "bench/")
_FRAME = re.compile(r"(?P<function>.*) \((?P<file>[^()]*?)(:\d+)?\)$")


@dataclass(frozen=True, slots=True)
class Profile:
    """Samples by function: at the top of the stack, anywhere in it, and by ours that led there."""

    samples: int
    itself: Counter[str]
    ours: Counter[str]
    anywhere: Counter[str]

    def print(self) -> str:
        """Return three lists, largest share first."""
        lists = (
            ("the function itself", self.itself),
            ("our function nearest to the top, with the libraries that it called", self.ours),
            ("the function and all that it called", self.anywhere),
        )
        lines = [f"{self.samples} samples"]
        for title, counter in lists:
            lines += ["", title]
            for name, count in counter.most_common(_SHOWN):
                lines.append(f"{count / max(1, self.samples):7.1%}  {name}")
        return "\n".join(lines) + "\n"


def parse_stacks(lines: Iterable[str]) -> Profile:
    """Parse folded stacks: frames from the bottom, split by semicolons, and a count."""
    samples = 0
    itself: Counter[str] = Counter()
    ours: Counter[str] = Counter()
    anywhere: Counter[str] = Counter()
    for line in lines:
        stack, _, number = line.rpartition(" ")
        frames = [_short(frame) for frame in stack.split(";")]
        count = int(number)
        samples += count
        itself[frames[-1]] += count
        anywhere.update(dict.fromkeys(frames, count))
        nearest = next((frame for frame in reversed(frames) if frame.startswith(_OURS)), None)
        if nearest is not None:
            ours[nearest] += count
    return Profile(samples, itself, ours, anywhere)


def _short(frame: str) -> str:
    """Return `file:function`, the file as its package knows it: no path of one machine."""
    match = _FRAME.match(frame)
    if match is None:
        return frame
    file = match["file"]
    for folder in ("site-packages/", f"python{sys.version_info[0]}.{sys.version_info[1]}/"):
        file = file.rpartition(folder)[2]
    parts = file.split("/")
    for package in ("committer", "workers", "bench"):
        if package in parts:
            file = "/".join(parts[parts.index(package) :])
    return f"{file}:{match['function']}"


@contextmanager
def recording(pids: Mapping[str, int], folder: Path) -> Iterator[dict[str, Profile]]:
    """Sample our Python processes; the profiles are there at the end."""
    profiles: dict[str, Profile] = {}
    samplers = {
        name: _start(pid, folder / f"stacks-{name}")
        for name, pid in pids.items()
        if name in ("committer", "publisher-0")
    }
    try:
        yield profiles
    finally:
        for name, sampler in samplers.items():
            sampler.send_signal(signal.SIGINT)
            sampler.wait(60)
            stacks = folder / f"stacks-{name}"
            if stacks.is_file():
                profiles[name] = parse_stacks(stacks.read_text().splitlines())


def _start(pid: int, output: Path) -> subprocess.Popen[bytes]:
    output.unlink(missing_ok=True)
    py_spy = Path(sys.executable).with_name("py-spy")
    return subprocess.Popen(
        [
            *(str(py_spy), "record", "--pid", str(pid), "--output", str(output)),
            *("--format", "raw", "--rate", str(_SAMPLES_A_SECOND), "--duration", str(_LONGEST_S)),
            *("--gil", "--function", "--nonblocking"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
