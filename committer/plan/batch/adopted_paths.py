"""The locations of files that a request adopts: they exist already, and others gave them names.

Such a file lies below the table's own folders, or below a folder that the table's property
`frazil.adopt.locations` allows. Its name need not hold the attempt; so it must not be one that the
attempt of another request may have: that request may list the file too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from uuid import UUID

from committer.errors import InvalidRequestError
from committer.iceberg.values.locations import comparable_location
from committer.plan.batch.data_locations import (
    PATH_SHOWN_MAX,
    AllowedPlaces,
    attempt_named,
    check_place,
)
from committer.reason import Reason

ADOPT_LOCATIONS_PROPERTY = "frazil.adopt.locations"
# The version of the uuids that attempts are.
_ATTEMPT_VERSION = 5
# The folders of a table are compared with each of its paths.
_folder = lru_cache(maxsize=256)(comparable_location)


def adopt_locations(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders outside the table from which files are adopted, each with a slash at its
    end. The property separates them by commas."""
    texts = (text.strip() for text in properties.get(ADOPT_LOCATIONS_PROPERTY, "").split(","))
    return tuple(dict.fromkeys(text.rstrip("/") + "/" for text in texts if text.strip("/")))


def adopted_refusal(path: str, places: AllowedPlaces, locations: tuple[str, ...]) -> str | None:
    """Return why a file may not be adopted from this path; None if it may.

    Places are compared in the widest way: another spelling of the table's folder is no other
    folder.
    """
    at = comparable_location(path)
    if any(at.is_within(_folder(folder)) for folder in places.metadata):
        return "it is in the folder of the table's metadata"
    is_own = any(at.is_within(_folder(folder)) for folder in places.prefixes)
    if is_own and _may_be_an_attempts(path):
        return (
            "its name has the uuid of an attempt, whose own request may add it; copy the file under"
            " another name to add it"
        )
    refusal = AllowedPlaces((*places.prefixes, *locations)).refusal(path)
    if refusal is not None and not is_own:
        return f"{refusal}; the table's property `{ADOPT_LOCATIONS_PROPERTY}` allows more folders"
    return refusal


def _may_be_an_attempts(path: str) -> bool:
    """Return whether the last uuid of the file's name is of the version that attempts are."""
    found = attempt_named(path)
    return found is not None and UUID(found).version == _ATTEMPT_VERSION


def check_adopted_paths(
    paths: Iterable[str], places: AllowedPlaces, locations: tuple[str, ...]
) -> None:
    """Check the paths of a request that adopts them. Errors: `InvalidRequestError`."""
    seen: dict[object, str] = {}
    for path in paths:
        check_place(path, "data file", adopted_refusal(path, places, locations))
        at = comparable_location(path)
        if at in seen:
            shown = (seen[at][:PATH_SHOWN_MAX], path[:PATH_SHOWN_MAX])
            raise InvalidRequestError(Reason.PATH_REPEATED, repeated_path(*shown))
        seen[at] = path


def repeated_path(first: str, second: str) -> str:
    """Say of two paths that count as one file why they do, and what to do."""
    if first == second:
        return f"`{first}` is listed twice: name it once"
    return (
        f"`{first}` and `{second}` may be one file to an engine that decodes percent signs,"
        " composes letters with their accents, or knows several spellings of a scheme: name a file"
        " in one spelling, or rename one of two files"
    )
