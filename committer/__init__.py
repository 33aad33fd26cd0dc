"""Frazil's committer: many writers' files, pressed into one Apache Iceberg commit.

Each request that a producer published durably is committed exactly once, or quarantined with a
reason; no request is lost and no producer sees a commit conflict. `docs/concepts.md` says how, and
`docs/guarantees.md` on which assumptions.
"""
