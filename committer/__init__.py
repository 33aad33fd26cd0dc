"""Frazil's committer: many writers' files, pressed into one Apache Iceberg commit.

What a producer published durably is committed exactly once, or quarantined with a reason; nothing
is lost and nobody sees a commit conflict. See `docs/concepts.md` for how, and
`docs/guarantees.md` for what that rests on.
"""
