"""Locations on Google Cloud Storage: `gs://bucket/key`."""

from __future__ import annotations

import re

from committer.storage.object_location import LocationForm, too_long

SCHEMES = ("gs",)


def _problem(key: str) -> str | None:
    if "\r" in key or "\n" in key or key in (".", ".."):
        return "no object can have this key"
    return too_long(key, 1024)


GCS_LOCATIONS = LocationForm(
    re.compile(
        r"gs://(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(?P<key>.*))?",
        re.IGNORECASE | re.DOTALL,
    ),
    "gs://bucket/key",
    _problem,
)
