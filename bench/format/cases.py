"""The cases of the benchmark: the operation, its peers, and the wanted factor. Pure.

A case is a name, and sizes: numbers of manifest entries, of files of a table, or of snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass

FRAZIL = "frazil"
FASTAVRO = "fastavro"
PYICEBERG = "pyiceberg"
RUST = "pyiceberg-core"
TITLES = {
    FRAZIL: "Frazil",
    FASTAVRO: "fastavro",
    PYICEBERG: "PyIceberg",
    RUST: "iceberg-rust (pyiceberg-core)",
}


@dataclass(frozen=True, slots=True)
class Case:
    """`systems`: who offers the same. `quick_sizes`: enough to see that all works."""

    name: str
    title: str
    unit: str
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    systems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """The speed that Frazil is to have at a size, as a multiple of a peer's."""

    case: str
    size: int
    wanted: float
    peer: str
    peer_case: str


_PLAN_SIZES, _SNAPSHOTS = (10_000, 100_000, 1_000_000), (10, 1_000, 10_000)

CASES = (
    Case(
        "encode", "Encode a manifest", "entries", (10_000,), (200,), (FRAZIL, FASTAVRO, PYICEBERG)
    ),
    Case(
        "decode",
        "Decode a manifest, statistics and all",
        "entries",
        (10_000,),
        (200,),
        (FRAZIL, FASTAVRO, PYICEBERG, RUST),
    ),
    Case(
        "check",
        "Path, partition and counts of each entry: Frazil proves each entry, fastavro projects",
        "entries",
        (10_000,),
        (200,),
        (FRAZIL, FASTAVRO),
    ),
    Case(
        "join",
        "Join 1,000 small manifests that were checked; the others write the entries again",
        "entries",
        (10_000,),
        (200,),
        (FRAZIL, PYICEBERG),
    ),
    Case(
        "check and join",
        "Check 1,000 small manifests and join them; the others read and write the entries",
        "entries",
        (10_000,),
        (200,),
        (FRAZIL, PYICEBERG),
    ),
    Case("plan", "Plan a scan of all files", "files", _PLAN_SIZES, (200,), (FRAZIL, PYICEBERG)),
    Case(
        "plan with a filter",
        "Plan a scan with a filter on bounds, which a tenth of the files may match",
        "files",
        _PLAN_SIZES,
        (200,),
        (FRAZIL, PYICEBERG),
    ),
    Case("metadata parse", "Parse metadata", "snapshots", _SNAPSHOTS, (10,), (FRAZIL, PYICEBERG)),
    Case("metadata print", "Print metadata", "snapshots", _SNAPSHOTS, (10,), (FRAZIL, PYICEBERG)),
    Case(
        "metadata print again",
        "Print metadata after one more commit",
        "snapshots",
        _SNAPSHOTS,
        (10,),
        (FRAZIL, PYICEBERG),
    ),
)

TARGETS = (
    Target("join", 10_000, 50, PYICEBERG, "encode"),
    Target("encode", 10_000, 8, PYICEBERG, "encode"),
    Target("decode", 10_000, 3, FASTAVRO, "decode"),
    Target("check", 10_000, 5, FASTAVRO, "check"),
    Target("plan", 100_000, 10, PYICEBERG, "plan"),
)

# A plan of PyIceberg's keeps every file in memory: more would take longer than all else together.
_LARGEST = {PYICEBERG: 100_000}


def sizes_of(case: Case, system: str, *, quick: bool) -> tuple[int, ...]:
    """Return the sizes that are worth measuring with this system."""
    if quick:
        return case.quick_sizes
    return tuple(size for size in case.sizes if size <= _LARGEST.get(system, size))
