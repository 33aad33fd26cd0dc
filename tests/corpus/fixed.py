"""Partitions by columns of type `fixed`: what Iceberg Java, which allows them, lets others send."""

from __future__ import annotations

from collections.abc import Iterable

from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from tests.corpus.bounds import FORM_NAMES, in_form
from tests.corpus.hostile import Hostile, Sent, short
from tests.corpus.tables import CODES, DROPPED
from tests.support.builders.request_builders import build_file, build_line


def _by(table: str, name: str, value: object, reason: Reason | None) -> Iterable[Hostile]:
    for form in FORM_NAMES:

        def send(loaded: LoadedTable, producer: str, form: str = form) -> Sent:
            line = build_line(loaded, producer=producer)
            file = build_file(loaded.metadata, line.attempt, partition=(value,))
            return Sent.of(in_form(form, line, loaded, file))

        yield Hostile(f"{name} = {short(value)} ({form})", reason, send, table=table)


WRONG: tuple[Hostile, ...] = (
    *_by(CODES, "the identity of a fixed column", b"AA", Reason.UNSUPPORTED),
    *_by(CODES, "the identity of a fixed column", None, Reason.UNSUPPORTED),
    *_by(DROPPED, "a dropped identity of a fixed column", b"AA", Reason.PARTITION_TYPE_MISMATCH),
)
RIGHT: tuple[Hostile, ...] = (*_by(DROPPED, "a dropped identity of a fixed column", None, None),)
