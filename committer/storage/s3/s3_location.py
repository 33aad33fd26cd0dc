"""Locations on S3: `s3://bucket/key`, also spelled `s3a:` and `s3n:` as Hadoop does."""

from __future__ import annotations

import re

from committer.storage.object_location import LocationForm, too_long

SCHEMES = ("s3", "s3a", "s3n")
S3_LOCATIONS = LocationForm(
    re.compile(
        r"(?:s3|s3a|s3n)://(?P<bucket>[A-Za-z0-9._-]{1,255})(?:/(?P<key>.*))?",
        re.IGNORECASE | re.DOTALL,
    ),
    "s3://bucket/key",
    lambda key: too_long(key, 1024),
)
