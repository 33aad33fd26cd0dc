"""Every hostile case, by what may be done with it."""

from __future__ import annotations

from tests.corpus import bounds, entries, fixed
from tests.corpus.files import FILES, PARTITIONS
from tests.corpus.hostile import Hostile
from tests.corpus.inbox import ENTRIES, GARBAGE, forged
from tests.corpus.lines import LINES
from tests.corpus.manifests import MANIFESTS
from tests.corpus.paths import PATHS
from tests.corpus.poison import POISON
from tests.corpus.repeats import REPEATS
from tests.corpus.tables import FLIGHTS

# Refused by a check that reads the request from its doorbell.
DOORBELLS = (*PATHS, *MANIFESTS)
REFUSED: tuple[Hostile, ...] = (
    *LINES,
    *POISON,
    *PATHS,
    *MANIFESTS,
    *PARTITIONS,
    *FILES,
    *REPEATS,
    *bounds.WRONG,
    *entries.WRONG,
    *fixed.WRONG,
)
LANDING: tuple[Hostile, ...] = (*bounds.RIGHT, *entries.RIGHT, *fixed.RIGHT)
# For a committer whose inbox is a folder of this machine, or one that has a queue.
ON_DISK = ENTRIES
TOLD: tuple[Hostile, ...] = (*GARBAGE, *map(forged, DOORBELLS[::8]))
REFUSED_OF_FLIGHTS = tuple(one for one in REFUSED if one.table == FLIGHTS)
