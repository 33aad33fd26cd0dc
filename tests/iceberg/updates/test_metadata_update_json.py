"""Updates in the form of the REST catalog description."""

from __future__ import annotations

from typing import Any, get_args

import orjson
import pytest

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.schema.partition_field_ids import NEW_FIELD_ID
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    RemoveProperties,
    SetProperties,
    Update,
)
from committer.iceberg.updates.metadata_update_json import print_update
from tests.iceberg.rest_forms import SPEC, SPEC_JSON, UPDATE_FORMS
from tests.support.iceberg.update_reader import parse_update


@pytest.mark.parametrize(("update", "form"), UPDATE_FORMS, ids=lambda each: type(each).__name__)
def test_an_update_is_printed_and_read_in_the_form_of_rest(
    update: Update, form: dict[str, Any]
) -> None:
    printed = orjson.loads(orjson.dumps(print_update(update)))
    assert printed == form
    assert parse_update(printed) == update


def test_every_update_has_its_form_here() -> None:
    assert {type(update) for update, _ in UPDATE_FORMS} == set(get_args(Update))


def test_an_added_spec_needs_no_id() -> None:
    form = {"action": "add-spec", "spec": {"fields": SPEC_JSON["fields"]}}
    assert parse_update(form) == AddPartitionSpec(PartitionSpec(0, SPEC.fields))


def test_fields_of_an_added_spec_need_no_ids_and_are_printed_without() -> None:
    bare = {"name": "b", "transform": "bucket[4]", "source-id": 1}
    form = {"action": "add-spec", "spec": {"spec-id": 0, "fields": [bare, bare | {"name": "c"}]}}
    update = parse_update(form)
    assert isinstance(update, AddPartitionSpec)
    assert [field.field_id for field in update.spec.fields] == [NEW_FIELD_ID, NEW_FIELD_ID]
    assert print_update(update) == form


def test_the_keys_of_old_clients_are_understood() -> None:
    set_old = {"action": "set-properties", "updated": {"a": "1"}}
    assert parse_update(set_old) == SetProperties({"a": "1"})
    assert parse_update({**set_old, "updates": {"b": "2"}}) == SetProperties({"b": "2"})
    remove_old = {"action": "remove-properties", "removed": ["a"]}
    assert parse_update(remove_old) == RemoveProperties(("a",))
    assert parse_update({**remove_old, "removals": ["b"]}) == RemoveProperties(("b",))


def test_an_unknown_action_is_named() -> None:
    with pytest.raises(UnsupportedError, match="unknown action `add-magic`"):
        parse_update({"action": "add-magic"})


@pytest.mark.parametrize("action", ["add-view-version", "set-current-view-version"])
def test_a_change_of_a_view_is_refused_as_such(action: str) -> None:
    with pytest.raises(UnsupportedError, match=f"`{action}` changes a view"):
        parse_update({"action": action})


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([], "update: expected an object"),
        ({}, "update: `action`: expected a string, found nothing"),
        ({"action": "assign-uuid", "uuid": "x"}, "`uuid`: expected a uuid, found `x`"),
        ({"action": "set-properties"}, "`updates`: expected an object of strings, found nothing"),
        ({"action": "remove-properties", "removals": [1]}, "`removals`: expected a list of str"),
        ({"action": "remove-snapshots", "snapshot-ids": ["1"]}, "expected a list of integers"),
        ({"action": "add-snapshot"}, "`snapshot`: expected an object, found nothing"),
        ({"action": "add-spec", "spec": None}, "`spec`"),
        ({"action": "set-snapshot-ref", "ref-name": "b"}, "`ref`: `type`|`snapshot-id`"),
    ],
)
def test_a_malformed_update_is_refused_with_its_key(form: object, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        parse_update(form)
