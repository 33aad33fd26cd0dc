"""`frazil serve`, and how late its loop turns.

Writes `samples.txt` into the folder that it runs in: the longest delays of the loop, by the clock
and by the CPU that the loop's own thread took meanwhile. Only the second are the loop's own work:
the others may be a wait for the interpreter's lock, or for a core. With `BENCH_LOOKS=1` a thread
looks a hundred times a second at what every thread does, and says where they were meanwhile, which
costs delays of its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

from committer.ports.catalog import Catalog
from committer.service.checks.checks import Checks

_EVERY_S = 0.01
_LATE_S = 0.05


class _Sampler:
    def __init__(self) -> None:
        self.beat_s = time.monotonic()
        self.stalls: list[float] = []
        self.held: list[float] = []
        self.loop_of_stalls: Counter[str] = Counter()
        self.all: Counter[str] = Counter()
        self.rest: Counter[str] = Counter()

    async def beat(self) -> None:
        while True:
            before_s, used_s = time.monotonic(), time.thread_time()
            self.beat_s = before_s
            await asyncio.sleep(_EVERY_S)
            late_s = time.monotonic() - before_s - _EVERY_S
            held_s = time.thread_time() - used_s
            if late_s > _LATE_S:
                self.stalls.append(late_s)
            if held_s > _LATE_S:
                self.held.append(held_s)

    def look(self) -> None:
        main = threading.main_thread().ident
        mine = threading.get_ident()
        while True:
            time.sleep(_EVERY_S)
            is_late = time.monotonic() - self.beat_s > _EVERY_S + _LATE_S
            for ident, frame in sys._current_frames().items():
                if ident == mine:
                    continue
                where = _where(frame)
                if ident == main:
                    self.all[where] += 1
                    if is_late:
                        self.loop_of_stalls[where] += 1
                elif "wait" not in where and "_worker" not in where.split(" < ")[0]:
                    self.rest[where] += 1

    def write(self, path: Path) -> None:
        lines = [
            f"{title} > {_LATE_S} s: {len(found)}, together {sum(found):.1f} s,"
            f" longest {[round(one, 3) for one in sorted(found, reverse=True)[:8]]}"
            for title, found in (
                ("the loop late", self.stalls),
                ("of which its own thread computed", self.held),
            )
        ]
        for title, counter in (
            ("the loop while stalled", self.loop_of_stalls),
            ("the loop", self.all),
            ("threads", self.rest),
        ):
            if not counter:
                continue
            total = sum(counter.values())
            lines.append(f"-- {title}: {total} samples")
            lines += [f"{n / total:6.1%} {where}" for where, n in counter.most_common(14)]
        path.write_text("\n".join(lines) + "\n")


def _where(frame: FrameType) -> str:
    stack = traceback.extract_stack(frame)
    ours = [one for one in stack if "/committer/" in one.filename or "/selectors" in one.filename]
    shown = ours[-4:] if ours else stack[-2:]
    return " < ".join(
        f"{Path(one.filename).name}:{one.name}:{one.lineno}" for one in reversed(shown)
    )


def main() -> None:
    from committer.service.process import service as run

    sampler = _Sampler()
    if os.environ.get("BENCH_LOOKS"):
        threading.Thread(target=sampler.look, daemon=True).start()
    path = Path.cwd() / "samples.txt"

    def writing() -> None:
        while True:
            time.sleep(2)
            sampler.write(path)

    threading.Thread(target=writing, daemon=True).start()
    inner = run.Service.run

    async def with_beat(
        self: run.Service, catalog: Catalog, stop: asyncio.Event, checks: Checks
    ) -> None:
        beat = asyncio.create_task(sampler.beat())
        try:
            await inner(self, catalog, stop, checks)
        finally:
            beat.cancel()

    run.Service.run = with_beat  # type: ignore[method-assign]  # for a measurement only
    from committer.__main__ import main as cli_main

    sys.exit(cli_main())


if __name__ == "__main__":
    main()
