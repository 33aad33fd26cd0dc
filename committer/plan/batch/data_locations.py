"""The locations that a request may name: below the table's folders, in the table's spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import sub
from urllib.parse import unquote

from committer.errors import InvalidRequestError
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.locations import data_folder, metadata_folder
from committer.reason import Reason

# Iceberg compares locations as strings, and orphan clean-up matches them as strings: a path
# that could spell one object in two ways, leave the folder or hide characters is refused. A
# percent sign alone is fine (partition values are percent-encoded in paths).
_SUSPICIOUS = re.compile(
    r"""[\\?#]                  # backslash, query, fragment
      | //                       # empty segment
      | /(?:\.|%2e){1,2}(?:/|\Z) # . and .., encoded or not
      | /\Z                      # no file name
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PLACES = ("write.data.path", "write.metadata.path")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LAST_UUID = re.compile(f".*({_UUID.pattern})", re.IGNORECASE | re.DOTALL)
_UUID_LENGTH = 36
# A uuid that begins behind the start of another and ends behind it shares eight digits at most.
_SHARED_MAX = 8


FILE_NAME_BYTES_MAX = 255
PATH_SHOWN_MAX = 512
"""So much of a path is shown in messages, in characters."""

# The names that writers give most of their files: they have one spelling only.
_PLAIN_SEGMENT = r"[A-Za-z0-9_=-][A-Za-z0-9_=.+:@,-]*"


@lru_cache(maxsize=64)
def _plain_paths(prefixes: tuple[str, ...]) -> re.Pattern[str]:
    below = "|".join(map(re.escape, prefixes))
    return re.compile(f"(?:{below})(?:{_PLAIN_SEGMENT}/)*{_PLAIN_SEGMENT}")


@lru_cache(maxsize=64)
def _plain_lines(places: AllowedPlaces) -> re.Pattern[str]:
    """Match a line that is the plain path of a data file. Its group: the file's name."""
    segment = f"{_PLAIN_SEGMENT}+"
    below = "|".join(map(re.escape, places.prefixes))
    outside = "".join(f"(?!{re.escape(one)})" for one in places.metadata)
    return re.compile(f"^{outside}(?:{below})(?:{segment}/)*+({segment})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AllowedPlaces:
    """The folders below which the files of a table may lie, each with its trailing slash.

    `metadata`: those of them that are for metadata alone. A data file there could be one of the
    table's own metadata files, by an attempt that is named like it; it would be deleted with the
    rows that it never had.
    """

    prefixes: tuple[str, ...]
    metadata: tuple[str, ...] = ()

    @classmethod
    def of(cls, metadata: TableMetadata) -> AllowedPlaces:
        location, properties = metadata.location, metadata.properties
        places = [location, *filter(None, map(properties.get, _PLACES))]
        folders = {metadata_folder(location, {}), metadata_folder(location, properties)}
        data = data_folder(location, properties) + "/"
        return cls(
            tuple(dict.fromkeys(place.rstrip("/") + "/" for place in places)),
            tuple(sorted(f"{one}/" for one in folders if not data.startswith(f"{one}/"))),
        )

    def data_refusal(self, path: str) -> str | None:
        """Return why a data file may not have this path; None if it may."""
        if self.metadata and path.startswith(self.metadata):
            return "it is in the folder of the table's metadata"
        if _plain_paths(self.prefixes).fullmatch(path):
            return None
        return self.refusal(path) or _name_refusal(path)

    def plain_names(self, paths: Sequence[str]) -> list[str] | None:
        """Return the file names of data files whose paths are plain, short and allowed; None where
        one of them has to be looked at by itself. One search in all of them: calls for each path
        would take a fifth of a request's check.
        """
        lines = "\n".join(paths)
        if lines.count("\n") != len(paths) - 1 or max(map(len, paths)) > FILE_NAME_BYTES_MAX:
            return None
        names: list[str] = _plain_lines(self).findall(lines)
        return names if len(names) == len(paths) else None

    def refusal(self, path: str) -> str | None:
        """Return why the path is not allowed; None if it is."""
        if _plain_paths(self.prefixes).fullmatch(path):
            return None
        for prefix in self.prefixes:
            if path.startswith(prefix):
                rest = path[len(prefix) - 1 :]
                if _SUSPICIOUS.search(rest) or not rest.isprintable() or _leaves(rest):
                    return "its spelling is not canonical"
                return None
        return f"it is not below {' or '.join(self.prefixes)}"


def _name_refusal(path: str) -> str | None:
    """Return why a file may not have this name; None if it may.
    A name that can be spelled in two ways (decoded, or normalized) could be two requests'."""
    name = path[path.rfind("/") + 1 :]
    if "%" in name or not name.isascii():
        return "its file name can be spelled in two ways: expected ASCII without `%`"
    return None


def _leaves(rest: str) -> bool:
    """Return whether a reader that decodes percent signs would leave the folder."""
    if "%" not in rest:
        return False
    depth = 0
    for segment in re.split(r"[/\\]", unquote(rest).lstrip("/")):
        depth += -1 if segment == ".." else 1
        if depth < 1:
            return True
    return False


def check_place(path: str, what: str, refusal: str | None) -> None:
    """Refuse a path for `refusal`, if there is one, and one whose file name is too long. `what`:
    the kind of file, for the message. Errors: `InvalidRequestError`.
    """
    if refusal:
        raise InvalidRequestError(
            Reason.PATH_NOT_ALLOWED, f"{what} `{path[:PATH_SHOWN_MAX]}`: {refusal}"
        )
    if _is_name_too_long(path):
        raise InvalidRequestError(
            Reason.FILE_NAME_TOO_LONG,
            f"{what} `{path[:PATH_SHOWN_MAX]}`: its name has more than {FILE_NAME_BYTES_MAX} bytes",
        )


def _is_name_too_long(path: str) -> bool:
    """Return whether the file's name has more bytes than usual file systems can hold."""
    if len(path) <= FILE_NAME_BYTES_MAX and path.isascii():
        return False
    return len(path[path.rfind("/") + 1 :].encode()) > FILE_NAME_BYTES_MAX


def comparable_name(path: str) -> str:
    """Return a file's name as a storage sees it that does not distinguish upper and lower case."""
    return path[path.rfind("/") + 1 :].lower()


# --- Whose a file is -----------------------------------------------------------------------------


def names_attempt(path: str, attempt: str) -> bool:
    """Return whether the attempt is the last uuid, in any spelling, of the file's own name.

    So a path names one attempt, and an attempt is one request's: no other may list the file.
    """
    at = path.rfind(attempt)
    if at < 0 or path.find("/", at) >= 0:
        return False
    is_too_short_for_another = len(path) - at < 2 * _UUID_LENGTH - _SHARED_MAX
    return is_too_short_for_another or _UUID.search(path, at + 1) is None


def all_name_attempt(names: Sequence[str], attempt: str) -> bool:
    """Return whether `names_attempt` holds for each of these file names, as far as can be told
    without a search for other uuids.
    """
    places = [name.rfind(attempt) for name in names]
    ends_max = max(map(sub, map(len, names), places))
    return min(places) >= 0 and ends_max < 2 * _UUID_LENGTH - _SHARED_MAX


def attempt_named(path: str) -> str | None:
    """Return the attempt for which `names_attempt` may hold, in lower case, or None."""
    found = _LAST_UUID.match(path, path.rfind("/") + 1)
    return found[1].lower() if found else None
