"""The names of a REST catalog's properties, each with its meaning. See `property_names`."""

from __future__ import annotations

import re

# As Python reads a number, so as PyIceberg does.
_COUNT = re.compile(r"[1-9][0-9]{0,6}(?:_[0-9]{1,3}){0,2}")
_FLAG = re.compile(r"true|false", re.IGNORECASE)

REST = {
    "prefix": "Between `/v1/` and the rest of a REST catalog's paths, where its configuration names"
    " none.",
    "rest-page-size": "The names that a page of a REST catalog's lists has. Default: the server's.",
    "rest.auth.type": "How a REST catalog knows its client: `none`, `basic`, `oauth2` or `sigv4`."
    " Default: as the properties below say.",
    "auth.type": "PyIceberg's name of `rest.auth.type` (`noop` for `none`).",
    "token": "A bearer token for a REST catalog.",
    "credential": "`id:secret` of a REST catalog's client, which fetches tokens and renews them.",
    "oauth2-server-uri": "Where tokens are fetched. Default: `<uri>/v1/oauth/tokens`.",
    "scope": "The scope of tokens. Default: `catalog`.",
    "audience": "The audience of tokens.",
    "resource": "The resource of tokens.",
    "rest.auth.basic.username": "User name for `rest.auth.type` `basic`.",
    "rest.auth.basic.password": "Password for `rest.auth.type` `basic`.",
    "rest.sigv4-enabled": "`true`: as `rest.auth.type` `sigv4`: requests are signed as for AWS.",
    "rest.signing-region": "The region in signatures. Default: `client.region`, `AWS_REGION`.",
    "rest.signing-name": "The service in signatures: `glue`, `s3tables`. Default: `execute-api`.",
    "rest.access-key-id": "Static credentials for signatures. Default: as for `client.…`.",
    "rest.secret-access-key": "The secret of `rest.access-key-id`.",
    "rest.session-token": "The token of temporary credentials for signatures.",
    "rest.atomic-transactions": "`true`: this server applies a commit of several tables"
    " (`POST …/transactions/commit`) to all of them or to none, as Polaris and Lakekeeper do and"
    " Iceberg's own server does not. Default: false, and such commits are refused.",
    "ssl.cabundle": "PEM file of the authorities that a REST catalog's certificate is checked with."
    " Default: the machine's.",
    "ssl.client.cert": "PEM file of the client's certificate.",
    "ssl.client.key": "PEM file of the key of `ssl.client.cert`.",
}
HEADER_PREFIX = "header."
"""`header.<Name>` is sent to a REST catalog with each request."""
REST_FORMS = {
    "rest-page-size": (_COUNT, "a number above 0"),
    "rest.atomic-transactions": (_FLAG, "true or false"),
    "rest.sigv4-enabled": (_FLAG, "true or false"),
}
