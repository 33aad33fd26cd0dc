"""Variants of data files as their two binaries; shredded ones are put back together, row by row.

Source: the Parquet format, "Variant Shredding".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from workers.arrow.arrow_types import VARIANT
from workers.arrow.arrow_values import physical
from workers.read.variant_bytes import (
    NULL,
    encode_array,
    encode_object,
    fields_of,
    names_of,
    primitive_encoder,
)

_METADATA, _VALUE, _TYPED = "metadata", "value", "typed_value"
# The ids of the names of each row's variant; None for a null one.
_Names = Sequence[Mapping[str, int] | None]
_Encoded = list[bytes | None]


def plain_variants(array: pa.StructArray) -> pa.Array:
    """Return stored variants with all of each value in `value`.

    Errors: `InvalidMetadataError` for what is no variant; `UnsupportedError` for a shredded type
    that is not known.
    """
    parts = _parts(array)
    metadata, is_null = parts[_METADATA], pc.is_null(array)
    if _TYPED in parts:
        known = {one: names_of(one) for one in metadata.unique().to_pylist() if one is not None}
        names = [None if one is None else known[one] for one in metadata.to_pylist()]
        encoded = [NULL if one is None else one for one in _values(array, names)]
        value = pa.array(encoded, pa.binary())
    else:
        value = parts[_VALUE]
    fields = [VARIANT.field(at) for at in range(VARIANT.num_fields)]
    return pa.StructArray.from_arrays([metadata, value], fields=fields, mask=is_null)


def _parts(array: pa.StructArray) -> dict[str, pa.Array]:
    """Return the members of a struct by name, null wherever the struct is."""
    return dict(zip([field.name for field in array.type], array.flatten(), strict=True))


def _values(array: pa.StructArray, names: _Names) -> _Encoded:
    """Return the encoded value of each row; None for a missing one."""
    parts = _parts(array)
    rest = parts[_VALUE].to_pylist() if _VALUE in parts else [None] * len(array)
    if _TYPED not in parts:
        return rest
    return _typed_values(parts[_TYPED], rest, names)


def _typed_values(array: pa.Array, rest: _Encoded, names: _Names) -> _Encoded:
    """Return shredded values, and where there is none the rest."""
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(array.type):
        here = [known if there else None for known, there in zip(names, valid, strict=True)]
        objects = _objects(array, rest, here)
        return [objects[at] if there else rest[at] for at, there in enumerate(valid)]
    if pa.types.is_list(array.type):
        arrays = _arrays(array, names)
        return [arrays[at] if there else rest[at] for at, there in enumerate(valid)]
    encode = primitive_encoder(array.type)
    values = physical(array).to_pylist()
    return [encode(values[at]) if there else rest[at] for at, there in enumerate(valid)]


def _objects(array: pa.StructArray, rest: _Encoded, names: _Names) -> _Encoded:
    """Return objects of shredded fields, and of those that the rest has beside; none where there
    are no names."""
    shredded = {name: _values(part, names) for name, part in _parts(array).items()}
    found: _Encoded = []
    for at, known in enumerate(names):
        if known is None:
            found.append(None)
            continue
        fields = {name: value for name, part in shredded.items() if (value := part[at]) is not None}
        beside = rest[at]
        if beside is not None:
            by_id = {number: name for name, number in known.items()}
            fields |= {by_id[number]: value for number, value in fields_of(beside)}
        found.append(encode_object(fields, known))
    return found


def _arrays(array: pa.ListArray, names: _Names) -> _Encoded:
    lengths = [length or 0 for length in pc.list_value_length(array).to_pylist()]
    repeated = [known for known, length in zip(names, lengths, strict=True) for _ in range(length)]
    elements = [NULL if one is None else one for one in _values(array.flatten(), repeated)]
    found: _Encoded = []
    start = 0
    for length in lengths:
        found.append(encode_array(elements[start : start + length]))
        start += length
    return found
