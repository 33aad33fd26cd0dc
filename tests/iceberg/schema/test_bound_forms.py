"""Which bytes are a bound of a column, and that no way through an entry lets others pass."""

from __future__ import annotations

import random
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from committer.errors import InvalidRequestError
from committer.iceberg.entry.data_file import DataFile, ManifestContent
from committer.iceberg.entry.entry_check import check_added_file
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_manifest
from committer.iceberg.schema.bound_forms import bound_forms, form_of
from committer.iceberg.schema.schema import Schema, parse_schema
from committer.iceberg.splice.manifest_walk import walk_additions
from committer.iceberg.values.single_value import decoder, encoder
from committer.iceberg.values.type_json import parse_type
from committer.iceberg.values.types import IcebergType, NestedField, StructType
from committer.reason import Reason
from tests.support.iceberg.bounds_by_type import FORMS
from tests.support.iceberg.manifest_builders import SYNC, added_entry, foreign_manifest, spec

RIGHT = [(kind, bound) for kind, (right, _) in FORMS.items() for bound in right]
WRONG = [(kind, bound) for kind, (_, wrong) in FORMS.items() for bound in wrong]


def schema_of(*kinds: str) -> Schema:
    """Build columns of these types, from id 1 on."""
    fields = (NestedField(n, f"c{n}", parse_type(kind), False) for n, kind in enumerate(kinds, 1))
    return Schema(tuple(fields))


def manifest_of(files: list[DataFile], schema: Schema) -> bytes:
    context = ManifestContext(3, schema, spec())
    return encode_manifest(map(added_entry, files), context, sync=SYNC).content


def refusal(content: bytes, schema: Schema, *, last_column_id: int = 100) -> str | None:
    """Return the reason of the refusal; None if it passes."""
    forms = bound_forms((schema,), schema, last_column_id)
    try:
        walk_additions(content, StructType(()), 3, ManifestContent.DATA, forms=forms)
    except InvalidRequestError as error:
        return error.reason
    return None


def file_with(bounds: dict[int, bytes], *, is_upper: bool = False) -> DataFile:
    name = "upper_bounds" if is_upper else "lower_bounds"
    changes: dict[str, object] = {name: bounds}
    return DataFile(file_path="s3://b/f", record_count=1, file_size_in_bytes=9, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("is_upper", [False, True])
@pytest.mark.parametrize(("kind", "bound"), RIGHT)
def test_a_bound_that_readers_can_decode_passes(kind: str, bound: bytes, is_upper: bool) -> None:
    schema = schema_of(kind)
    content = manifest_of([file_with({1: bound}, is_upper=is_upper)] * 3, schema)
    assert refusal(content, schema) is None
    assert refusal(foreign_manifest(content), schema) is None


@pytest.mark.parametrize("is_upper", [False, True])
@pytest.mark.parametrize(("kind", "bound"), WRONG)
def test_a_bound_that_is_no_value_of_its_column_is_refused(
    kind: str, bound: bytes, is_upper: bool
) -> None:
    schema = schema_of(kind, "string")
    right = FORMS[kind][0]
    before = file_with({1: right[0], 2: b"x"} if right else {2: b"x"}, is_upper=is_upper)
    bad = file_with({1: bound, 2: b"x"}, is_upper=is_upper)
    for files in ([bad], [before, bad], [before, before, before, bad, before]):
        content = manifest_of(files, schema)
        assert refusal(content, schema) == Reason.BOUND_MALFORMED
        assert refusal(foreign_manifest(content), schema) == Reason.BOUND_MALFORMED


def test_each_type_has_its_forms_here() -> None:
    kinds = {type(parse_type(kind)).__name__ for kind in FORMS}
    assert {one.__name__ for one in _leaves(IcebergType)} == kinds | NESTED_TYPES


NESTED = parse_schema(
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "s", "required": False, "type": {"type": "struct", "fields": [
                {"id": 2, "name": "a", "required": False, "type": "int"}]}},
            {"id": 3, "name": "l", "required": False, "type": {
                "type": "list", "element-id": 4, "element-required": False, "element": "int"}},
            {"id": 5, "name": "m", "required": False, "type": {
                "type": "map", "key-id": 6, "key": "string", "value-id": 7,
                "value-required": False, "value": "double"}},
        ],
    }
)  # fmt: skip
NESTED_TYPES = {type(field.field_type).__name__ for field in NESTED.fields}


def _leaves(kind: type[object]) -> set[type[object]]:
    below = [leaf for one in kind.__subclasses__() for leaf in _leaves(one)]
    return set(below) or {kind}


@pytest.mark.parametrize("field_id", [1, 3, 5])
def test_structs_lists_and_maps_have_no_bounds_and_what_they_hold_has(field_id: int) -> None:
    inner = {2: bytes(4), 4: bytes(4), 6: b"a", 7: bytes(8)}
    assert refusal(manifest_of([file_with(inner)], NESTED), NESTED) is None
    content = manifest_of([file_with(inner | {field_id: bytes(4)})], NESTED)
    assert refusal(content, NESTED) == Reason.BOUND_MALFORMED


def test_columns_that_are_gone_may_have_any_bound_and_those_to_come_none() -> None:
    schema = schema_of("int")
    reserved = 2**31 - 1 - 107
    for field_id, passes in ((50, True), (51, False), (reserved, True), (2**31 - 300, False)):
        content = manifest_of([file_with({field_id: bytes(8)})], schema)
        assert (refusal(content, schema, last_column_id=50) is None) == passes, field_id
    # Reserved ids have types too.
    bad = manifest_of([file_with({reserved: bytes(3)})], schema)
    assert refusal(bad, schema) == Reason.BOUND_MALFORMED


def test_a_bound_of_an_unknown_field_id_is_refused_by_that_id() -> None:
    forms = bound_forms((schema_of("int"),), schema_of("int"), 50)
    with pytest.raises(InvalidRequestError, match="field id 51") as refused:
        check_added_file(file_with({51: bytes(4)}), ManifestContent.DATA, 2, forms)
    assert refused.value.reason == Reason.SCHEMA_MISMATCH


def test_a_column_has_the_form_that_it_has_now_or_had_last() -> None:
    older, newer = schema_of("int", "date", "int"), schema_of("long", "timestamp")
    schemas = (Schema(older.fields, 0), Schema(newer.fields, 1))
    forms = bound_forms(schemas, schemas[1], 3)
    assert forms.misfit({1: bytes(8), 2: bytes(8), 3: bytes(4)}) is None
    # Promoted: as it was written before.
    assert forms.misfit({1: bytes(4), 2: bytes(4)}) is None
    assert forms.misfit({3: bytes(8)}) == 3
    assert bound_forms(schemas[1:], schemas[1], 3).misfit({2: bytes(4)}) == 2


@pytest.mark.parametrize("kind", ["boolean", "int", "long", "float", "double", "decimal(9, 2)"])
@given(st.data())
def test_what_an_encoder_prints_has_the_form(kind: str, data: st.DataObject) -> None:
    one = parse_type(kind)
    values: dict[str, st.SearchStrategy[object]] = {
        "boolean": st.booleans(),
        "int": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(width=32),
        "double": st.floats(),
        "decimal(9, 2)": st.integers(1 - 10**9, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    }
    encoded = encoder(one)(data.draw(values[kind]))
    assert form_of(one).fits(encoded)
    decoder(one)(encoded)


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("learned", [("é", "é"), ("ab", "ab")])
def test_halves_of_two_texts_are_no_letter(is_plain: bool, learned: tuple[str, str]) -> None:
    schema = schema_of("string", "string")
    # A table of its own: what was learned of another is not known here.
    last_column_id = 200 + len(learned[0])
    right = file_with({1: learned[0].encode(), 2: learned[1].encode()})
    other = file_with({1: b"a", 2: "é".encode()})
    for bad in ({1: b"a\xc3", 2: b"\xa9b"}, {1: b"\xc3\xa9", 2: b"\xa9b"}, {1: b"a\xc3", 2: b"ab"}):
        for before in ([right] * 4, [right, other] * 3):
            content = manifest_of([*before, file_with(bad)], schema)
            content = foreign_manifest(content) if is_plain else content
            found = refusal(content, schema, last_column_id=last_column_id)
            assert found == Reason.BOUND_MALFORMED


# --- All ways come to one answer -----------------------------------------------------------------

COLUMNS = ("long", "string", "decimal(9, 2)", "double", "string", "boolean", "fixed[20]", "binary")


def _some_bound(kind: str, chance: random.Random) -> bytes:
    if kind == "string":
        return "".join(chance.choices("aéx", k=chance.choice((0, 1, 4, 4, 4, 70)))).encode()
    right = FORMS.get(kind, ((bytes(20), b"abc"), ()))[0]
    return struct.pack("<q", chance.getrandbits(60)) if kind == "long" else chance.choice(right)


def _bad_bound(kind: str, chance: random.Random) -> bytes:
    wrong = FORMS[kind][1] if kind in FORMS else (bytes(21),)
    return chance.choice(wrong)


@pytest.mark.parametrize("seed", range(40))
def test_a_wrong_bound_is_found_among_any_others(seed: int) -> None:
    """Sized and plain maps, shapes that repeat and that do not, texts beyond ASCII and not."""
    chance = random.Random(seed)
    schema = schema_of(*COLUMNS)
    columns = range(1, 1 + chance.randint(1, len(COLUMNS)))
    files = []
    for _ in range(chance.choice((1, 5, 60))):
        bounds = {n: _some_bound(COLUMNS[n - 1], chance) for n in columns if chance.random() < 0.95}
        files.append(file_with(bounds, is_upper=chance.random() < 0.5))
    is_plain = chance.random() < 0.5

    def verdict() -> str | None:
        content = manifest_of(files, schema)
        return refusal(foreign_manifest(content) if is_plain else content, schema)

    assert verdict() is None
    bad = chance.choice([n for n in columns if n != 8] or [1])
    place = chance.randrange(len(files))
    spoiled = dict(files[place].lower_bounds or files[place].upper_bounds or {})
    spoiled[bad] = _bad_bound(COLUMNS[bad - 1], chance)
    files[place] = file_with(spoiled, is_upper=files[place].upper_bounds is not None)
    assert verdict() == Reason.BOUND_MALFORMED
