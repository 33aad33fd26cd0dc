"""The options of an upsert, checked. Values only: nothing is looked up."""

from __future__ import annotations

import re
from collections.abc import Mapping

from committer.errors import InvalidFilterError, SettingsError
from committer.iceberg.expressions.expression import EqualTo, In, Reference
from committer.iceberg.expressions.where_text import parse_where
from workers.upserts.upsert import DeleteMark, Upsert

KEYS, DELETE, SEQUENCE = "upsert-keys", "upsert-delete-column", "upsert-sequence-column"
DELETES = "upsert-deletes"
UPSERT_OPTIONS = frozenset({KEYS, DELETE, SEQUENCE, DELETES})

_NAME = re.compile(r"`(?:[^`]|``)+`|[^\W\d]\w*")
_DELETE_FORMS = "expected a boolean column, or the values that delete: `op in ('d', 'D')`"


def upsert_options(given: Mapping[str, str]) -> Upsert | None:
    """Read the options of an upsert; None for any other write.
    Errors: `SettingsError` naming the option."""
    if not given.get(KEYS):
        if others := sorted(UPSERT_OPTIONS.intersection(given) - {KEYS}):
            raise SettingsError(f"option `{others[0]}`: expected `{KEYS}` with it")
        return None
    if (deletes := given.get(DELETES, "equality").lower()) != "equality":
        raise SettingsError(
            f"option `{DELETES}`: found `{deletes}`, expected `equality`: to delete old rows by"
            " their positions, a writer would have to look the keys up in the table"
        )
    keys = tuple(_name(text.strip(), KEYS) for text in given[KEYS].split(","))
    sequence = given.get(SEQUENCE)
    return Upsert(
        keys,
        _delete_mark(given[DELETE].strip()) if given.get(DELETE) else None,
        _name(sequence.strip(), SEQUENCE) if sequence else None,
    )


def _name(text: str, option: str) -> str:
    if not _NAME.fullmatch(text):
        raise SettingsError(f"option `{option}`: expected the name of a column, found `{text}`")
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _delete_mark(text: str) -> DeleteMark:
    if _NAME.fullmatch(text):
        return DeleteMark(_name(text, DELETE))
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
