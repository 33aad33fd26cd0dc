"""The names of catalog properties that Frazil reads, each with its meaning.

The names are PyIceberg's and Iceberg Java's. A name that is not here is refused in Frazil's own
settings, where it can only be a mistake. PyIceberg's file and variables serve other programs too,
so there it is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_GENERAL = {
    "type": "Kind of catalog: `sql` (or `jdbc`), `rest`, `dynamodb`, `hadoop` (tables of a file"
    " system), `glue`, `hive`, `s3tables`. Default: as the scheme of `uri` says.",
    "uri": "Where the catalog is: a REST catalog's address, a SQLAlchemy URL (`sqlite:…`,"
    " `postgresql:…`), a JDBC one (`jdbc:…`), `dynamodb://<table>`, or `thrift://<host>:<port>`,"
    " of Hive several by commas. Default: `sqlite:///<home>/catalog.db`.",
    "warehouse": "Location of new tables: `file://…`, `s3://<bucket>/…`, `gs://<bucket>/…`,"
    " `abfss://<container>@<account>.dfs.core.windows.net/…`; default: `file://<home>/warehouse`."
    " REST: the name that it knows. S3 Tables: the ARN of a table bucket.",
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
_GCS = {
    "gcs.service.host": "`http://host:port` of a server that is not Google's. Default:"
    " `STORAGE_EMULATOR_HOST`, else Google.",
    "gcs.oauth2.token": "An access token for Google Cloud Storage. Default: the places where every"
    " Google tool finds credentials (`GOOGLE_APPLICATION_CREDENTIALS`, metadata server), which"
    " renew theirs.",
    "gcs.oauth2.token-expires-at": "When `gcs.oauth2.token` ends, in milliseconds since 1970.",
    "gcs.no-auth": "`true`: no credentials, for a public bucket or an emulator.",
}
_ADLS = {
    "adls.account-name": "The storage account on Azure: the one that key or SAS token are of, and"
    " of locations that name none.",
    "adls.account-key": "The key of the account.",
    "adls.sas-token": "A shared access signature of the account or the container, in place of the"
    " key.",
    "adls.connection-string": "Account, key or SAS token, and address in one, as Azure's portal"
    " shows them.",
    "adls.token": "An access token of Microsoft Entra. It cannot be renewed.",
    "adls.tenant-id": "The tenant of a service principal. Default: `AZURE_TENANT_ID` with"
    " `AZURE_CLIENT_SECRET` or `AZURE_FEDERATED_TOKEN_FILE`; else the managed identity of the"
    " machine.",
    "adls.client-id": "The id of the service principal. Default: `AZURE_CLIENT_ID`.",
    "adls.client-secret": "The secret of the service principal. Default: `AZURE_CLIENT_SECRET`.",
    "adls.anon": "`true`: no credentials, for a public container.",
    "adls.blob-storage-authority": "Where blobs are: `.blob.<suffix>` behind the account's name, or"
    " `host:port` of an emulator. Default: the cloud of the location.",
    "adls.blob-storage-scheme": "`http` for an emulator. Default: `https`.",
}
DRIVER_PROPERTIES = ("user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey")
"""The names behind `jdbc.` of Java that also mean something to PostgreSQL's own client library."""
_SQL = {
    "jdbc.user": "User of a catalog on PostgreSQL, if `uri` has none. Default: as every PostgreSQL"
    " client (`PGUSER`).",
    "jdbc.password": "The user's password, if `uri` has none. Default: as every PostgreSQL client"
    " (`PGPASSWORD`, `PGPASSFILE`, `~/.pgpass`).",
    "jdbc.sslmode": "TLS to PostgreSQL: `disable`, `prefer`, `require`, `verify-ca`, `verify-full`."
    " Default: `prefer`.",
    "jdbc.sslrootcert": "File of the certificates that may sign the server's.",
    "jdbc.sslcert": "File of the client's certificate.",
    "jdbc.sslkey": "File of the key of `jdbc.sslcert`.",
    "jdbc.schema-version": "`V0` or `V1`: the columns of tables that Frazil makes in a database"
    " without any. Existing ones are used as they are. Default: `V1`.",
}
_GLUE = {
    **_aws("glue", "Glue"),
    "glue.endpoint": "As `s3.endpoint`, for Glue. Default: `AWS_ENDPOINT_URL_GLUE`, else AWS.",
    "glue.id": "Account whose Glue Data Catalog it is. Default: that of the credentials.",
    "glue.skip-archive": "`false`: Glue archives the table's former version at each commit, of"
    " which it allows only so many. Default: `true`.",
}
_S3_TABLES = {
    **_aws("s3tables", "S3 Tables"),
    "s3tables.region": "Region of S3 Tables. Default: that of the ARN in `warehouse`, also for S3"
    " then.",
    "s3tables.endpoint": "As `s3.endpoint`, for S3 Tables. Default: `AWS_ENDPOINT_URL_S3TABLES`,"
    " else AWS.",
}
_HADOOP = {
    "hadoop.no-other-writers": "`true`: only Frazil writes to the tables of this `hadoop` catalog."
    " Required on an object store, where Iceberg Java overwrites versions of other writers."
    " Default: `false`.",
}
_REST = {
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
_HIVE = {
    "ugi": "The user that a Hive metastore sees, or `user:group,group`. Default: the metastore's"
    " own user.",
    "iceberg.engine.hive.lock-enabled": "`false`: tables of a Hive metastore without the table"
    " property `engine.hive.lock-enabled` are committed to without the metastore's lock, as all"
    " other engines have to do then. Default: `true`, as in Java.",
    "hive.allow-unfenced-locks": "`true`: accept a Hive metastore that ignores the expected"
    " parameter (before 2.3.10 and 4.0.1). Its locks alone keep commits apart then, and a commit"
    " that is delayed for longer than a lock lives can overwrite another.",
    "hive.kerberos-authentication": "Only `false`: Frazil does not speak Kerberos.",
}
CATALOG_PROPERTIES: Mapping[str, str] = MappingProxyType(
    {
        **_GENERAL,
        **_aws("client", "all AWS services"),
        **_S3,
        **_SQL,
        **_DYNAMODB,
        **_HADOOP,
        **_GLUE,
        **_S3_TABLES,
        **_GCS,
        **_ADLS,
        **_REST,
        **_HIVE,
    }
)
"""Meaning by name. What `client.…` says holds where the service's own property is not set."""

_FORMS = {
    "jdbc.sslmode": (
        re.compile(r"disable|allow|prefer|require|verify-ca|verify-full"),
        "disable, prefer, require, verify-ca or verify-full",
    ),
    "jdbc.schema-version": (re.compile(r"V[01]", re.IGNORECASE), "V0 or V1"),
    "gcs.oauth2.token-expires-at": (re.compile(r"[0-9]{1,15}"), "milliseconds since 1970"),
    "adls.blob-storage-authority": (
        re.compile(r"\.?[A-Za-z0-9.-]+(?::[0-9]+)?"),
        ".blob.SUFFIX or HOST:PORT",
    ),
    "adls.blob-storage-scheme": (re.compile(r"https?"), "http or https"),
    "glue.id": (re.compile(r"[0-9]{12}(:.+)?"), "an account of 12 digits"),
    # As Python reads a number, so as PyIceberg does.
    "rest-page-size": (re.compile(r"[1-9][0-9]{0,6}(?:_[0-9]{1,3}){0,2}"), "a number above 0"),
    **dict.fromkeys(
        (
            *("s3.endpoint", "dynamodb.endpoint", "gcs.service.host", "glue.endpoint"),
            "s3tables.endpoint",
        ),
        (re.compile(r"https?://[^/?#]+/?"), "http://HOST:PORT or https://HOST:PORT"),
    ),
    **dict.fromkeys(
        (
            *("gcs.no-auth", "adls.anon", "glue.skip-archive", "hadoop.no-other-writers"),
            *("rest.atomic-transactions", "rest.sigv4-enabled", "hive.allow-unfenced-locks"),
            *("hive.kerberos-authentication", "iceberg.engine.hive.lock-enabled"),
            *("s3.path-style-access", "s3.force-virtual-addressing"),
        ),
        (re.compile(r"true|false", re.IGNORECASE), "true or false"),
    ),
}


def is_known(name: str) -> bool:
    """Return whether Frazil reads a property of this name."""
    return name in CATALOG_PROPERTIES or name.startswith(HEADER_PREFIX)


def expected_form(name: str, value: str) -> str | None:
    """Return the form that the property must have; None where the value has it."""
    form, text = _FORMS.get(name, (None, ""))
    return None if form is None or form.fullmatch(value) else text
