"""The systems by name, opened when a scenario needs them and closed at its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench.frazil import Frazil
from bench.peers.program import JavaProgram, Peer, PyIcebergProgram
from bench.plan import Plan

FRAZIL = "frazil"
FRAZIL_DEFAULT = "frazil-default"
JAVA_FAST = "java-fast"
JAVA_MERGE = "java-merge"
PYICEBERG = "pyiceberg"
JAVA = (JAVA_FAST, JAVA_MERGE)
PEERS = (*JAVA, PYICEBERG)
TITLES = {
    FRAZIL: "Frazil, interval 0",
    FRAZIL_DEFAULT: "Frazil, default interval",
    JAVA_FAST: "Iceberg Java, fast append",
    JAVA_MERGE: "Iceberg Java, merge append",
    PYICEBERG: "PyIceberg, fast append",
}


@dataclass(slots=True)
class Systems:
    """The systems that a scenario measures; None for those that the plan leaves out."""

    frazil: Frazil | None
    frazil_default: Frazil | None
    peers: dict[str, Peer]


@contextmanager
def open_systems(plan: Plan, *, delay_ms: int = 0, with_default: bool = False) -> Iterator[Systems]:
    with ExitStack() as stack:

        def frazil(name: str, interval_ms: int | None) -> Frazil | None:
            if not plan.has(name):
                return None
            opened = Frazil(
                name, interval_ms=interval_ms, delay_ms=delay_ms, with_profiles=plan.profile
            )
            stack.callback(opened.close)
            return opened

        yield Systems(
            frazil=frazil(FRAZIL, 0),
            frazil_default=frazil(FRAZIL_DEFAULT, None) if with_default else None,
            peers=_peers(plan, stack.callback),
        )


def _peers(plan: Plan, at_end: Callable[[Callable[[], None]], object]) -> dict[str, Peer]:
    peers: dict[str, Peer] = {}
    if any(map(plan.has, JAVA)):
        java = JavaProgram("java")
        at_end(java.close)
        modes = ((JAVA_FAST, True), (JAVA_MERGE, False))
        peers |= {name: Peer(name, java, {"fast": fast}) for name, fast in modes if plan.has(name)}
    if plan.has(PYICEBERG):
        pyiceberg = PyIcebergProgram(PYICEBERG)
        at_end(pyiceberg.close)
        peers[PYICEBERG] = Peer(PYICEBERG, pyiceberg, {}, grace_s=12.0)
    return peers


def load_average() -> float:
    """Return how busy the machine was in the last minute, before a block."""
    return os.getloadavg()[0]
