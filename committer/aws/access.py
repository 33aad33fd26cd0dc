"""The settings about AWS as plain values; no client is known here.

Service and Spark side hand it to `committer.backends`. An empty text leaves what the usual AWS
settings say; credentials come from nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

AddressingStyle = Literal["auto", "path", "virtual"]
ADDRESSING_STYLES: tuple[str, ...] = get_args(AddressingStyle)
# The form of an endpoint's URL; empty for AWS itself.
ENDPOINT = r"^(https?://[^/?#]+/?)?$"


@dataclass(frozen=True, slots=True)
class AwsAccess:
    """The settings `aws.…`."""

    region: str = ""
    profile: str = ""
    s3_endpoint_url: str = ""
    dynamodb_endpoint_url: str = ""
    s3_addressing_style: AddressingStyle = "auto"


USUAL_AWS = AwsAccess()
