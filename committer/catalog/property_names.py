"""The names of catalog properties that Frazil reads, each with its meaning.

The names are PyIceberg's and Iceberg Java's. A name that is not here is refused in Frazil's own
settings, where it can only be a mistake. PyIceberg's file and variables serve other programs too,
so there it is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_ENDPOINT = re.compile(r"https?://[^/?#]+/?")
_FLAG = re.compile(r"true|false", re.IGNORECASE)

_GENERAL = {
    "type": "Kind of catalog: `sql` (or `jdbc`), `dynamodb`. Default: as the scheme of `uri` says.",
    "uri": "Where the catalog is: a SQLAlchemy URL, or `dynamodb://<table>`. Default:"
    " `sqlite:///<home>/catalog.db`.",
    "warehouse": "Location below which new tables are created: `file://…` or `s3://<bucket>/…`."
    " Default: `file://<home>/warehouse`.",
}


def _aws(service: str, meaning: str) -> dict[str, str]:
    return {
        f"{service}.region": f"Region of {meaning}. Default: `AWS_REGION`, or the profile's.",
        f"{service}.profile-name": f"Profile of `~/.aws/config` for {meaning}. Default:"
        " `AWS_PROFILE`.",
        f"{service}.access-key-id": f"Static credentials for {meaning}. Default: the places where"
        " every AWS tool finds them (role, web identity, profile, environment), which are safer.",
        f"{service}.secret-access-key": f"The secret of `{service}.access-key-id`.",
        f"{service}.session-token": f"The token of temporary credentials for {meaning}.",
    }


_S3 = {
    **_aws("s3", "S3"),
    "s3.endpoint": "`http://host:port` of a server that is not AWS. Default: `AWS_ENDPOINT_URL_S3`,"
    " else AWS.",
    "s3.path-style-access": "`true`: the bucket's name stands in the path of a request, as most"
    " servers that are not AWS need it.",
    "s3.force-virtual-addressing": "`true`: the bucket's name stands in the host name.",
}
_DYNAMODB = {
    **_aws("dynamodb", "DynamoDB"),
    "dynamodb.endpoint": "As `s3.endpoint`, for DynamoDB. Default: `AWS_ENDPOINT_URL_DYNAMODB`,"
    " else AWS.",
    "dynamodb.table-name": "The table of a DynamoDB catalog whose `uri` names none. Default:"
    " `iceberg`.",
    "table-name": "PyIceberg's name of `dynamodb.table-name`.",
}
CATALOG_PROPERTIES: Mapping[str, str] = MappingProxyType(
    {**_GENERAL, **_aws("client", "all AWS services"), **_S3, **_DYNAMODB}
)
"""Meaning by name. What `client.…` says holds where the service's own property is not set."""

_FORMS = {
    "s3.endpoint": (_ENDPOINT, "http://HOST:PORT or https://HOST:PORT"),
    "dynamodb.endpoint": (_ENDPOINT, "http://HOST:PORT or https://HOST:PORT"),
    "s3.path-style-access": (_FLAG, "true or false"),
    "s3.force-virtual-addressing": (_FLAG, "true or false"),
}


def is_known(name: str) -> bool:
    """Return whether Frazil reads a property of this name."""
    return name in CATALOG_PROPERTIES


def expected_form(name: str, value: str) -> str | None:
    """Return the form that the property must have; None where the value has it."""
    form, text = _FORMS.get(name, (None, ""))
    return None if form is None or form.fullmatch(value) else text
