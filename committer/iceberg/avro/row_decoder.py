"""Decodes the rows of data files: records as tuples of their fields, in the writer's order.

Manifests are read by field id (`decoder.py`); the columns of a data file may have no ids. Values
are in-memory values of Iceberg's types, but uuids that are text stay text, and times keep their
unit.
"""

from __future__ import annotations

from committer.iceberg.avro.decoder import Compiler, Decoder


def row_decoder(schema: object) -> Decoder:
    """Compile a decoder of a writer schema, which was read from JSON and checked.
    Errors: `InvalidMetadataError`."""
    return _RowCompiler(is_strict=False).compile(schema, 0)


class _RowCompiler(Compiler):
    def record_of(self, fields: tuple[tuple[int | None, Decoder], ...]) -> Decoder:
        decoders = tuple(decoder for _, decoder in fields)

        def decode(buf: bytes, position: int) -> tuple[object, int]:
            values = []
            for decoder in decoders:
                value, position = decoder(buf, position)
                values.append(value)
            return tuple(values), position

        return decode
