"""The commands that only look, and how each ends where there is no catalog yet, of any kind."""

from __future__ import annotations

from collections.abc import Sequence

READING: Sequence[tuple[Sequence[str], int]] = (
    (("status",), 1),
    (("status", "--json"), 1),
    (("status", "--table", "db.flights"), 1),
    (("table", "list"), 1),
    (("table", "list", "db", "--json"), 1),
    (("table", "show", "db.flights"), 1),
    (("table", "schema", "db.flights"), 1),
    (("table", "snapshots", "db.flights"), 1),
    (("table", "history", "db.flights"), 1),
    (("table", "files", "db.flights"), 1),
    (("table", "inspect", "db.flights", "--kind", "refs"), 1),
    (("table", "plan", "db.flights"), 1),
    (("table", "orphans", "db.flights"), 1),
    (("table", "drop", "db.flights", "--yes"), 1),
    (("table", "rename", "db.flights", "db.other", "--yes"), 1),
    (("table", "accept", "db.flights", "--yes"), 1),
    (("producer", "list", "db.flights"), 1),
    (("producer", "show", "db.flights", "a"), 1),
    (("producer", "freeze", "db.flights", "a"), 1),
    (("quarantine", "list"), 0),
    (("quarantine", "show", "a"), 1),
    (("quarantine", "replay", "a"), 1),
    (("inspect", "nothing"), 1),
)

# Groups of commands that open the catalog.
ASKING_THE_CATALOG = ("status", "table", "producer")
