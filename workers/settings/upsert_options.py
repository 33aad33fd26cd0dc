"""The options of an upsert, checked. Values only: nothing is looked up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast, get_args

from committer.errors import InvalidFilterError, SettingsError
from workers.settings.option_values import choice, whole_number
from workers.upserts.upsert import DeleteMark, Upsert, UpsertDeletes

KEYS, DELETE, SEQUENCE = "upsert-keys", "upsert-delete-column", "upsert-sequence-column"
DELETES, PARTITIONS = "upsert-deletes", "upsert-partitions"
UPSERT_OPTIONS = frozenset({KEYS, DELETE, SEQUENCE, DELETES, PARTITIONS})

_NAME = re.compile(r"`(?:[^`]|``)+`|[^\W\d]\w*")
_DELETE_FORMS = "expected a boolean column, or the values that delete: `op in ('d', 'D')`"


def upsert_options(given: Mapping[str, str]) -> Upsert | None:
    """Read the options of an upsert; None for any other write.
    Errors: `SettingsError` naming the option."""
    if not given.get(KEYS):
        if others := sorted(UPSERT_OPTIONS.intersection(given) - {KEYS}):
            raise SettingsError(f"option `{others[0]}`: expected `{KEYS}` with it")
        return None
    deletes = choice(given, DELETES, get_args(UpsertDeletes)) if given.get(DELETES) else None
    partitions = whole_number(given, PARTITIONS)
    if partitions is not None and (partitions < 1 or deletes != "positions"):
        raise SettingsError(
            f"option `{PARTITIONS}`: expected 1 or more, with `{DELETES}` `positions`: else the"
            " tasks that write are those of the DataFrame"
        )
    keys = tuple(_name(text.strip(), KEYS) for text in given[KEYS].split(","))
    if deletes == "positions":
        _check_waits(given)
    sequence = given.get(SEQUENCE)
    return Upsert(
        keys,
        _delete_mark(given[DELETE].strip()) if given.get(DELETE) else None,
        _name(sequence.strip(), SEQUENCE) if sequence else None,
        cast("UpsertDeletes | None", deletes),
        partitions or 1,
    )


def _check_waits(given: Mapping[str, str]) -> None:
    """Refuse options that an upsert by positions has no choice of."""
    if given.get("wait", "committed").lower() != "committed":
        raise SettingsError(
            f"option `wait`: expected `committed` with `{DELETES}` `positions`: a micro-batch looks"
            " for its keys among the rows of the one before"
        )
    if "on_conflict" in given:
        raise SettingsError(
            f"option `on_conflict`: found with `{DELETES}` `positions`, where a micro-batch that"
            " conflicts is looked up again"
        )


def _name(text: str, option: str) -> str:
    if not _NAME.fullmatch(text):
        raise SettingsError(f"option `{option}`: expected the name of a column, found `{text}`")
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _delete_mark(text: str) -> DeleteMark:
    if _NAME.fullmatch(text):
        return DeleteMark(_name(text, DELETE))
    from committer.iceberg.expressions.expression import EqualTo, In, Reference
    from committer.iceberg.expressions.where_text import parse_where

    try:
        found = parse_where(text)
    except InvalidFilterError as error:
        raise SettingsError(f"option `{DELETE}`: {_DELETE_FORMS}: {error}") from None
    match found:
        case In(Reference(column), values):
            return DeleteMark(column, values)
        case EqualTo(Reference(column), value):
            return DeleteMark(column, (value,))
    raise SettingsError(f"option `{DELETE}`: {_DELETE_FORMS}, found `{text}`")
