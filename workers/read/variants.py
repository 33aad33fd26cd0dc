"""Variants of data files as their two binaries.

Source: the Parquet format, "Variant Binary Encoding" and "Variant Shredding".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import UnsupportedError
from workers.arrow.arrow_types import VARIANT


def plain_variants(array: pa.StructArray) -> pa.Array:
    """Return stored variants with all of each value in `value`.

    Errors: `UnsupportedError` for a shredded column.
    """
    names = [field.name for field in array.type]
    if "typed_value" in names:
        raise UnsupportedError("a shredded variant")
    parts = dict(zip(names, array.flatten(), strict=True))
    fields = [VARIANT.field(at) for at in range(VARIANT.num_fields)]
    children = [parts[field.name] for field in fields]
    return pa.StructArray.from_arrays(children, fields=fields, mask=pc.is_null(array))
