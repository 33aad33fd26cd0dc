"""A client of Trino's statement protocol: SQL in, rows out."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

_TIMEOUT_S = 120.0
_BUSY_S = 0.1
_USER = "frazil"


class TrinoError(Exception):
    """A statement that Trino refuses. `name`: of the error, such as `TABLE_NOT_FOUND`."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


@dataclass(frozen=True, slots=True)
class TrinoClient:
    """A user of a running server, of one catalog of those that it has."""

    url: str
    catalog: str = ""

    def sql(self, statement: str) -> list[list[Any]]:
        """Run a statement to its end, and return all of its rows.

        Numbers come as numbers, other values as Trino prints them.
        Errors: `TrinoError` if Trino refuses it.
        """
        rows: list[list[Any]] = []
        answer = self._call(f"{self.url}/v1/statement", statement.encode())
        while True:
            if error := answer.get("error"):
                raise TrinoError(error["errorName"], error["message"])
            rows += answer.get("data") or []
            if "nextUri" not in answer:
                return rows
            answer = self._call(answer["nextUri"])

    def value(self, statement: str) -> Any:
        """Return the only value of a statement's only row."""
        [[value]] = self.sql(statement)
        return value

    def column(self, statement: str) -> list[Any]:
        """Return the values of a statement's only column."""
        return [value for (value,) in self.sql(statement)]

    def is_ready(self) -> bool:
        """Return whether the server takes statements."""
        try:
            with urllib.request.urlopen(f"{self.url}/v1/info", timeout=5) as answer:
                return not json.load(answer)["starting"]
        except OSError:
            return False

    def _call(self, url: str, content: bytes | None = None) -> dict[str, Any]:
        headers = {
            "X-Trino-User": _USER,
            "X-Trino-Time-Zone": "UTC",
            "X-Trino-Catalog": self.catalog,
            # Without it, times are cut to milliseconds.
            "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",
        }
        request = urllib.request.Request(url, data=content, headers=headers)
        while True:
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                    found: dict[str, Any] = json.load(answer)
                    return found
            except urllib.error.HTTPError as error:
                with error:
                    # As the protocol says: the server has no room at the moment.
                    if error.code not in (502, 503, 504):
                        raise
                time.sleep(_BUSY_S)
