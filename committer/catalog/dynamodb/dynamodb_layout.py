"""The items of Iceberg Java's DynamoDbCatalog, and every expression on them. Pure; nothing is sent.

Source: docs/reference/iceberg-notes.md 9.1. A table's item has the key (`<namespace>.<name>`,
`<namespace>`), that of a namespace (`NAMESPACE`, `<namespace>`). Each property is an attribute
`p.<key>`; `v` is a new random text with every write. Attributes that are not named here belong to
others and stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from committer.catalog.namespaces import Namespace, join_namespace
from committer.errors import InvalidMetadataError, UnsupportedError
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb.type_defs import (
        CreateTableInputTypeDef,
        DeleteItemInputTypeDef,
        GetItemInputTypeDef,
        PutItemInputTypeDef,
        QueryInputPaginateTypeDef,
        TransactWriteItemsInputTypeDef,
        UniversalAttributeValueTypeDef,
        UpdateItemInputTypeDef,
        UpdateTypeDef,
    )

IDENTIFIER = "identifier"
NAMESPACE = "namespace"
INDEX = "namespace-identifier"
VERSION = "v"
CREATED_AT = "created_at"
UPDATED_AT = "updated_at"
_PROPERTY = "p."
TABLE_TYPE = "p.table_type"
LOCATION = "p.metadata_location"
PREVIOUS_LOCATION = "p.previous_metadata_location"
DEFAULT_LOCATION = "p.default_location"
ICEBERG = "ICEBERG"
# In place of a table's identifier. It has no dot, so no table can be called so.
NAMESPACE_ITEM = "NAMESPACE"

# Limits of DynamoDB for the two parts of a key.
_PARTITION_KEY_BYTES_MAX = 2_048
_SORT_KEY_BYTES_MAX = 1_024
_ABSENT = f"attribute_not_exists({IDENTIFIER})"

Item = Mapping[str, Any]
"""An item as the service sends it: `{"p.table_type": {"S": "ICEBERG"}}`."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """An item's pointer: the location of the table's metadata, and the version of this write.

    `version` is empty where the item has none.
    """

    location: str
    version: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """The mark of a write in its item: its own random text, and the time of this machine."""

    version: str
    now_ms: int

    @classmethod
    def fresh(cls, world: World) -> Stamp:
        return cls(str(world.uuid()), world.now_ms())


def table_key(identifier: TableIdentifier) -> dict[str, UniversalAttributeValueTypeDef]:
    """Return the key of a table's item. Errors: `UnsupportedError` for a name that cannot be told
    apart from others once it is joined by dots.
    """
    namespace = join_namespace(identifier.namespace)
    if not identifier.name or "." in identifier.name:
        raise UnsupportedError(
            f"table `{identifier}`: this catalog needs a name that is neither empty nor contains a"
            " dot"
        )
    text = f"{namespace}.{identifier.name}"
    if (
        len(text.encode()) > _PARTITION_KEY_BYTES_MAX
        or len(namespace.encode()) > _SORT_KEY_BYTES_MAX
    ):
        raise UnsupportedError(
            f"table `{identifier}`: DynamoDB takes names of {_PARTITION_KEY_BYTES_MAX} bytes and"
            f" namespaces of {_SORT_KEY_BYTES_MAX}"
        )
    return {IDENTIFIER: _text(text), NAMESPACE: _text(namespace)}


def namespace_key(namespace: Namespace) -> dict[str, UniversalAttributeValueTypeDef]:
    """Return the key of a namespace's item. Errors: as `join_namespace`."""
    return {IDENTIFIER: _text(NAMESPACE_ITEM), NAMESPACE: _text(join_namespace(namespace))}


def text_of(item: Item, name: str) -> str:
    """Return a text attribute; empty if there is none."""
    return str(item.get(name, {}).get("S", ""))


def parse_pointer(identifier: TableIdentifier, item: Item) -> Pointer:
    """Read a table's item. Errors: `InvalidMetadataError` where it is none."""
    kind, location = text_of(item, TABLE_TYPE), text_of(item, LOCATION)
    if kind != ICEBERG:
        raise InvalidMetadataError(
            f"table {identifier}: the catalog's item is not that of an Iceberg table:"
            f" `{TABLE_TYPE}` is {f'`{kind}`' if kind else 'missing'}, expected `{ICEBERG}`"
        )
    if not location:
        raise InvalidMetadataError(
            f"table {identifier}: the catalog names no metadata file: `{LOCATION}` is missing"
        )
    return Pointer(location, text_of(item, VERSION))


def parse_names(namespace: Namespace, items: list[Item]) -> list[str]:
    """Return names of the tables among the items of a namespace in the index, in their order."""
    prefix = f"{join_namespace(namespace)}."
    identifiers = (text_of(item, IDENTIFIER) for item in items)
    return [one.removeprefix(prefix) for one in identifiers if one.startswith(prefix)]


# --- Reading -------------------------------------------------------------------------------------


def get_item(
    table_name: str, key: Mapping[str, UniversalAttributeValueTypeDef]
) -> GetItemInputTypeDef:
    """Read one item, strongly consistent."""
    return {"TableName": table_name, "Key": key, "ConsistentRead": True}


def query_namespaces(table_name: str, prefix: str = "") -> QueryInputPaginateTypeDef:
    """Query every namespace's item, or those that begin with `prefix`; strongly consistent."""
    query: QueryInputPaginateTypeDef = {
        "TableName": table_name,
        "ConsistentRead": True,
        "KeyConditionExpression": f"{IDENTIFIER} = :identifier",
        "ExpressionAttributeValues": {":identifier": _text(NAMESPACE_ITEM)},
    }
    if prefix:
        query["KeyConditionExpression"] = (
            f"{IDENTIFIER} = :identifier AND begins_with(#namespace, :prefix)"
        )
        query["ExpressionAttributeNames"] = {"#namespace": NAMESPACE}
        query["ExpressionAttributeValues"] = {
            ":identifier": _text(NAMESPACE_ITEM),
            ":prefix": _text(prefix),
        }
    return query


def query_tables(table_name: str, namespace: Namespace) -> QueryInputPaginateTypeDef:
    """Query the items of a namespace by the index, which follows the table a moment later."""
    return {
        "TableName": table_name,
        "IndexName": INDEX,
        "KeyConditionExpression": "#namespace = :namespace",
        "ExpressionAttributeNames": {"#namespace": NAMESPACE},
        "ExpressionAttributeValues": {":namespace": _text(join_namespace(namespace))},
    }


# --- Writing -------------------------------------------------------------------------------------


def update_pointer(
    table_name: str, identifier: TableIdentifier, base: Pointer, location: str, stamp: Stamp
) -> UpdateTypeDef:
    """Build the call of a swap, which is an action of a transaction, too. A failed condition
    answers with the current item.
    """
    condition = "#location = :base"
    values = {
        ":base": _text(base.location),
        ":location": _text(location),
        ":stamp": _text(stamp.version),
        ":now": _number(stamp.now_ms),
    }
    if base.version:
        condition += " AND #version = :version"
        values[":version"] = _text(base.version)
    return {
        "TableName": table_name,
        "Key": table_key(identifier),
        "UpdateExpression": (
            "SET #location = :location, #previous = :base, #updated = :now, #version = :stamp"
        ),
        "ConditionExpression": condition,
        "ExpressionAttributeNames": {
            "#location": LOCATION,
            "#previous": PREVIOUS_LOCATION,
            "#updated": UPDATED_AT,
            "#version": VERSION,
        },
        "ExpressionAttributeValues": values,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def update_pointers(
    updates: Sequence[UpdateTypeDef], stamp: Stamp
) -> TransactWriteItemsInputTypeDef:
    """Build the call that swaps several pointers together, each as `update_pointer` says."""
    return {
        "ClientRequestToken": stamp.version,
        "TransactItems": [{"Update": update} for update in updates],
    }


def put_table(
    table_name: str, identifier: TableIdentifier, location: str, stamp: Stamp
) -> PutItemInputTypeDef:
    """Put a new table's item, unless its name is taken."""
    item = {**table_key(identifier), TABLE_TYPE: _text(ICEBERG), LOCATION: _text(location)}
    return _put(table_name, item, stamp)


def put_namespace(table_name: str, namespace: Namespace, stamp: Stamp) -> PutItemInputTypeDef:
    """Put a new namespace's item, unless there is one."""
    return _put(table_name, namespace_key(namespace), stamp)


def delete_namespace(table_name: str, namespace: Namespace) -> DeleteItemInputTypeDef:
    """Delete a namespace's item, if there is one."""
    return {
        "TableName": table_name,
        "Key": namespace_key(namespace),
        "ConditionExpression": f"attribute_exists({IDENTIFIER})",
    }


def update_namespace(
    table_name: str,
    namespace: Namespace,
    properties: Mapping[str, str],
    removed: Collection[str],
    stamp: Stamp,
) -> UpdateItemInputTypeDef:
    """Set and remove properties of a namespace's item, if there is one."""
    names = {"#updated": UPDATED_AT, "#version": VERSION}
    values = {":now": _number(stamp.now_ms), ":stamp": _text(stamp.version)}
    changes = ["#updated = :now", "#version = :stamp"]
    for number, (key, value) in enumerate(properties.items()):
        names[f"#set{number}"], values[f":set{number}"] = f"{_PROPERTY}{key}", _text(value)
        changes.append(f"#set{number} = :set{number}")
    gone = {f"#gone{number}": f"{_PROPERTY}{key}" for number, key in enumerate(removed)}
    return {
        "TableName": table_name,
        "Key": namespace_key(namespace),
        "UpdateExpression": f"SET {', '.join(changes)}"
        + (f" REMOVE {', '.join(gone)}" if gone else ""),
        "ConditionExpression": f"attribute_exists({IDENTIFIER})",
        "ExpressionAttributeNames": names | gone,
        "ExpressionAttributeValues": values,
    }


def properties_of(item: Item) -> dict[str, str]:
    """Return the properties of an item by their own names."""
    return {
        name.removeprefix(_PROPERTY): text_of(item, name)
        for name in sorted(item)
        if name.startswith(_PROPERTY)
    }


def _put(
    table_name: str, item: Mapping[str, UniversalAttributeValueTypeDef], stamp: Stamp
) -> PutItemInputTypeDef:
    return {
        "TableName": table_name,
        "Item": {**item, **_born(stamp)},
        "ConditionExpression": _ABSENT,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def delete_table(table_name: str, identifier: TableIdentifier) -> DeleteItemInputTypeDef:
    """Delete a table's item, whatever file it names; keep an item that is no table."""
    return {
        "TableName": table_name,
        "Key": table_key(identifier),
        "ConditionExpression": "#type = :type",
        "ExpressionAttributeNames": {"#type": TABLE_TYPE},
        "ExpressionAttributeValues": {":type": _text(ICEBERG)},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def move_item(
    table_name: str, identifier: TableIdentifier, to: TableIdentifier, item: Item, stamp: Stamp
) -> TransactWriteItemsInputTypeDef:
    """Give a table's item, as it was read, another key in one transaction.

    The first action fails if the item has changed since, the second if the new name is taken.
    """
    renamed = {**item, **table_key(to), **_born(stamp)}
    condition, values = "attribute_not_exists(#version)", {":location": item[LOCATION]}
    if VERSION in item:
        condition, values[":version"] = "#version = :version", item[VERSION]
    return {
        "ClientRequestToken": stamp.version,
        "TransactItems": [
            {
                "Delete": {
                    "TableName": table_name,
                    "Key": table_key(identifier),
                    "ConditionExpression": f"#location = :location AND {condition}",
                    "ExpressionAttributeNames": {"#location": LOCATION, "#version": VERSION},
                    "ExpressionAttributeValues": values,
                }
            },
            {"Put": {"TableName": table_name, "Item": renamed, "ConditionExpression": _ABSENT}},
        ],
    }


# --- The table itself ----------------------------------------------------------------------------


def create_table(table_name: str) -> CreateTableInputTypeDef:
    """Create the table and its index, paid for by request."""
    return {
        "TableName": table_name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": IDENTIFIER, "AttributeType": "S"},
            {"AttributeName": NAMESPACE, "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": IDENTIFIER, "KeyType": "HASH"},
            {"AttributeName": NAMESPACE, "KeyType": "RANGE"},
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": INDEX,
                "KeySchema": [
                    {"AttributeName": NAMESPACE, "KeyType": "HASH"},
                    {"AttributeName": IDENTIFIER, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    }


def _born(stamp: Stamp) -> dict[str, UniversalAttributeValueTypeDef]:
    now = _number(stamp.now_ms)
    return {CREATED_AT: now, UPDATED_AT: now, VERSION: _text(stamp.version)}


def _text(text: str) -> UniversalAttributeValueTypeDef:
    return {"S": text}


def _number(number: int) -> UniversalAttributeValueTypeDef:
    return {"N": str(number)}
