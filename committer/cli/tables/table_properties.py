"""Permitted values of a table's properties, and the keys that no user sets.

Only properties that Frazil acts on are checked: it would silently ignore a value that it cannot
read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from committer.cli.context.property_changes import parse_pairs
from committer.iceberg.metadata.metadata_check import RESERVED_PROPERTIES
from committer.iceberg.values.near_names import did_you_mean
from committer.ledger_entry import LEDGER_PREFIX
from committer.plan.batch.adopted_paths import ADOPT_LOCATIONS_PROPERTY, adopt_locations
from committer.plan.batch.batch_policy import INTERVAL_PROPERTY
from committer.plan.cleanup import dangling_deletes, position_conversion
from committer.plan.cleanup.automatic_tags import (
    EVERY_PROPERTY,
    KEEP_DEFAULT,
    KEEP_PROPERTY,
    TAGS_MAX,
    TagPolicy,
    parse_period_ms,
)
from committer.plan.cleanup.merge_selection import CLUSTER_PROPERTY
from committer.plan.ledger.quiet_gap import GAP_PROPERTY
from committer.request.unsigned_operations import (
    CHECK_FILES_PROPERTY,
    EXPECTED,
    UNSIGNED_PROPERTY,
    parse_operations,
)
from committer.service.requests.signature_check import REQUIRE_PROPERTY
from committer.table_defaults import EXPIRE_PROPERTY, UPSERT_DELETES, UPSERT_DELETES_PROPERTY

if TYPE_CHECKING:
    from committer.ports.catalog_capabilities import CatalogCapabilities

TAG_PROPERTIES = frozenset({EVERY_PROPERTY, KEEP_PROPERTY})

_Check = Callable[[str], bool]
_OURS = "frazil."


def _one_of(*words: str) -> tuple[str, _Check]:
    return f"`{'` or `'.join(words)}`", lambda text: text.strip().lower() in words


def _number(least: int, most: int = 2**63 - 1) -> tuple[str, _Check]:
    said = f"a whole number from {least} on" if most >= 2**31 else f"{least} to {most}"
    return (
        said,
        lambda text: (
            bool(re.fullmatch(r"\d{1,19}", text.strip(), re.ASCII)) and (least <= int(text) <= most)
        ),
    )


_FLAG = _one_of("true", "false")
_FORMAT = _one_of("parquet", "orc", "avro")
_PERIOD = "minutes, hours or days, as 15m, 1h or 7d", lambda text: parse_period_ms(text) is not None
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/+[^/]|/[^/]")


def _are_folders(text: str) -> bool:
    found = adopt_locations({ADOPT_LOCATIONS_PROPERTY: text})
    return bool(found) and all(map(_SCHEME.match, found))


def _are_operations(text: str) -> bool:
    try:
        parse_operations(text)
    except ValueError:
        return False
    return True


_KNOWN: Mapping[str, tuple[str, _Check]] = {
    EXPIRE_PROPERTY: _FLAG,
    REQUIRE_PROPERTY: _FLAG,
    UNSIGNED_PROPERTY: (EXPECTED, _are_operations),
    CHECK_FILES_PROPERTY: _FLAG,
    INTERVAL_PROPERTY: _number(0, 3_600_000),
    GAP_PROPERTY: _number(0, 60_000),
    EVERY_PROPERTY: _PERIOD,
    KEEP_PROPERTY: _PERIOD,
    CLUSTER_PROPERTY: _FLAG,
    dangling_deletes.ENABLED_PROPERTY: _FLAG,
    position_conversion.ENABLED_PROPERTY: _FLAG,
    UPSERT_DELETES_PROPERTY: _one_of(*UPSERT_DELETES),
    ADOPT_LOCATIONS_PROPERTY: ("folders with commas between them, each a URI", _are_folders),
    "gc.enabled": _FLAG,
    "commit.manifest-merge.enabled": _FLAG,
    "commit.manifest.min-count-to-merge": _number(1),
    "commit.manifest.target-size-bytes": _number(1),
    "history.expire.min-snapshots-to-keep": _number(1),
    "history.expire.max-snapshot-age-ms": _number(0),
    "history.expire.max-ref-age-ms": _number(0),
    "write.delete.format.default": _FORMAT,
    "write.format.default": _FORMAT,
    "write.metadata.compression-codec": _one_of("none", "gzip"),
    "write.metadata.delete-after-commit.enabled": _FLAG,
    "write.metadata.previous-versions-max": _number(1),
    "write.object-storage.enabled": _FLAG,
    "write.object-storage.partitioned-paths": _FLAG,
}


def parse_properties(pairs: Iterable[str], *, hint: str) -> dict[str, str]:
    """Parse all properties of a table, and check them. Errors: `typer.BadParameter`."""
    properties = parse_pairs(pairs, hint=hint)
    check_properties(properties, hint=hint)
    check_tags(properties, hint=hint)
    return properties


def check_properties(properties: Mapping[str, str], *, hint: str) -> None:
    """Refuse keys as `check_keys`, and values that Frazil could not read.

    Errors: `typer.BadParameter`.
    """
    check_keys(tuple(properties), hint=hint)
    for key, text in properties.items():
        expected, fits = _KNOWN.get(key, ("", lambda _: True))
        if not fits(text):
            raise typer.BadParameter(f"{hint}: `{key}`: expected {expected}, found `{text}`")


def check_tags(properties: Mapping[str, str], *, hint: str) -> None:
    """Refuse a table whose automatic tags stay too long or too short a time.

    Errors: `typer.BadParameter`.
    """
    policy = TagPolicy.of(properties)
    if EVERY_PROPERTY in properties and (policy is None or policy.keep_ms < policy.every_ms):
        raise typer.BadParameter(
            f"{hint}: the table would have `{EVERY_PROPERTY}={properties[EVERY_PROPERTY]}` and"
            f" `{KEEP_PROPERTY}={properties.get(KEEP_PROPERTY, KEEP_DEFAULT)}`: expected tags to"
            f" stay for 1 to {TAGS_MAX} intervals"
        )


def check_keys(keys: Sequence[str], *, hint: str) -> None:
    """Refuse the ledger's keys, those that engines reserve, and unknown ones of Frazil.

    Errors: `typer.BadParameter`.
    """
    ours = [key for key in _KNOWN if key.startswith(_OURS)]
    for key in keys:
        if key.startswith(LEDGER_PREFIX):
            raise typer.BadParameter(
                f"{hint}: `{key}` belongs to the ledger of what has landed; `frazil producer`"
                " changes it"
            )
        if key in RESERVED_PROPERTIES:
            raise typer.BadParameter(f"{hint}: `{key}` is reserved: engines tell it of the table")
        if key.startswith(_OURS) and key not in ours:
            hint_of = did_you_mean(key, ours) or f"there are {', '.join(ours)}"
            raise typer.BadParameter(f"{hint}: there is no property `{key}`; {hint_of}")


def refuse_long_keys(keys: Iterable[str], capabilities: CatalogCapabilities) -> None:
    """Refuse properties that the catalog has no room to name. Errors: `typer.BadParameter`."""
    chars_max = capabilities.property_key_chars_max
    for key in keys:
        if chars_max is not None and len(key) > chars_max:
            raise typer.BadParameter(
                f"property `{key}`: its name has {len(key)} characters, and a"
                f" {capabilities.kind} takes {chars_max}"
            )
