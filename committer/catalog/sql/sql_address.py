"""The address of a SQL catalog: SQLAlchemy's and JDBC's forms of a URL, and one driver a database.

`catalog.uri` may have been written for PyIceberg (`postgresql+psycopg2://…`) or for Java
(`jdbc:postgresql://…?user=…`). Both name a place; the driver is always ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, quote, urlencode

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from committer.errors import SettingsError

_DRIVERS = {
    "sqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "mariadb": "mariadb+pymysql",
    # The drivers of both speak to either. A server that is MySQL is refused when it says so.
    "mysql": "mariadb+pymysql",
}
_UNTRIED = {
    "oracle": "Oracle",
    "mssql": "SQL Server",
}
_EXPECTED = (
    "expected `sqlite:////abs/path/catalog.db`, `postgresql://USER@HOST:5432/DATABASE`,"
    " `mariadb://USER@HOST:3306/DATABASE`, or `jdbc:postgresql://…`, `jdbc:mariadb://…` and"
    " `jdbc:sqlite:…` as for Java"
)
# Parameters of PostgreSQL's JDBC driver, by the name that libpq has for the same thing.
_OF_JDBC = {
    "user": "user",
    "password": "password",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "options": "options",
}
# Those that tune the Java driver alone.
_OF_JAVA_ALONE = frozenset(
    {
        "binaryTransfer",
        "cancelSignalTimeout",
        "defaultRowFetchSize",
        "loginTimeout",
        "preparedStatementCacheQueries",
        "preparedStatementCacheSizeMiB",
        "prepareThreshold",
        "reWriteBatchedInserts",
        "socketTimeout",
        "tcpKeepAlive",
    }
)


def database_url(uri: str, driver_properties: Mapping[str, str]) -> URL:
    """Return where the database is, with our driver. `driver_properties`: those that Java's client
    hands to its driver (`user`, `password`, `sslmode`, …); the URL's own win.

    Errors: `SettingsError` for a form or a database that is not supported; none holds a secret.
    """
    try:
        url = _of_jdbc(uri) if uri.startswith("jdbc:") else make_url(uri)
    except (ArgumentError, ValueError) as error:
        raise SettingsError(f"catalog uri: {_EXPECTED}") from error
    database = url.drivername.partition("+")[0]
    if database not in _DRIVERS:
        raise SettingsError(_not_supported(database))
    url = url.set(drivername=_DRIVERS[database])
    match database:
        case "sqlite":
            return url
        case "postgresql":
            return _with(url, _libpq_parameters(list(driver_properties.items())))
    return _with(url, _of_mariadb(driver_properties))


def _not_supported(database: str) -> str:
    if database in _UNTRIED:
        return (
            f"catalog uri: {_UNTRIED[database]} is not supported: that it keeps concurrent commits"
            f" apart has not been shown; {_EXPECTED}"
        )
    return f"catalog uri: no such kind of database: `{database}`; {_EXPECTED}"


def _of_jdbc(uri: str) -> URL:
    rest = uri.removeprefix("jdbc:")
    database, _, place = rest.partition(":")
    if database == "sqlite":
        return make_url(f"sqlite:///{place.removeprefix('file:')}")
    address, _, query = place.partition("?")
    url = make_url(f"{database}:{_with_hosts(address)}")
    if database in ("mariadb", "mysql"):
        return _with(url, _of_mariadb(dict(parse_qsl(query, keep_blank_values=True))))
    return url.update_query_dict(_libpq_parameters(parse_qsl(query, keep_blank_values=True)))


def _with_hosts(address: str) -> str:
    """Return `//host:port/database` as SQLAlchemy writes it: several hosts stand in the query."""
    if not address.startswith("//"):  # a database of this machine
        return f"//localhost/{address.lstrip('/')}"
    hosts, _, database = address[2:].partition("/")
    if "," not in hosts:
        return address
    return f"///{database}?{urlencode([('host', host) for host in hosts.split(',')])}"


def _libpq_parameters(given: list[tuple[str, str]]) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for name, value in given:
        if name in _OF_JDBC:
            parameters[_OF_JDBC[name]] = value
        elif name == "ssl":
            if value.lower() in ("", "true"):
                parameters.setdefault("sslmode", "verify-full")
        elif name == "currentSchema":
            parameters["options"] = f"-csearch_path={value.replace(' ', '')}"
        elif name == "targetServerType":
            parameters["target_session_attrs"] = "read-write" if value == "primary" else "any"
        elif name not in _OF_JAVA_ALONE:
            raise SettingsError(
                f"catalog uri: the JDBC parameter `{quote(name, safe='')}` is not known; remove it,"
                " or write the address as `postgresql://…` with a parameter of libpq"
            )
    return parameters


def _of_mariadb(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return user and password. Errors: `SettingsError` for anything else."""
    for name in given:
        if name not in ("user", "password"):
            raise SettingsError(
                f"catalog uri: the parameter `{quote(name, safe='')}` of Java's driver is not known"
                " for MariaDB; remove it, or write the address as `mariadb://…` with a parameter of"
                " PyMySQL (`ssl_ca`, `ssl_cert`, `ssl_key`)"
            )
    return given


def _with(url: URL, given: Mapping[str, str]) -> URL:
    """Fill in user, password and parameters that the URL lacks."""
    query = {**given, **url.query}
    user, password = query.pop("user", None), query.pop("password", None)
    return url.set(
        username=url.username or _text(user), password=url.password or _text(password), query=query
    )


def _text(value: Sequence[str] | str | None) -> str | None:
    return value if isinstance(value, str) or value is None else value[-1]
