"""Addresses of a SQL catalog as PyIceberg, SQLAlchemy and Java write them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from committer.catalog.sql.sql_address import database_url
from committer.errors import SettingsError

OURS = "postgresql+psycopg"


@pytest.mark.parametrize(
    ("uri", "properties", "expected"),
    [
        ("sqlite:////srv/catalog.db", {"user": "me"}, "sqlite:////srv/catalog.db"),
        ("jdbc:sqlite:/srv/catalog.db", {}, "sqlite:////srv/catalog.db"),
        ("jdbc:sqlite:file:/srv/catalog.db", {}, "sqlite:////srv/catalog.db"),
        ("postgresql://me:hush@db:5433/lake", {}, f"{OURS}://me:hush@db:5433/lake"),
        ("postgresql+psycopg2://me:hush@db/lake", {}, f"{OURS}://me:hush@db/lake"),
        (
            "postgresql://db/lake",
            {"user": "me", "password": "h@sh", "sslmode": "require"},
            f"{OURS}://me:h%40sh@db/lake?sslmode=require",
        ),
        (
            "postgresql://me:hush@db/lake?sslmode=verify-full",
            {"user": "other", "password": "other", "sslmode": "disable"},
            f"{OURS}://me:hush@db/lake?sslmode=verify-full",
        ),
        (
            "jdbc:postgresql://db:5433/lake?user=me&password=h%40sh&prepareThreshold=0",
            {},
            f"{OURS}://me:h%40sh@db:5433/lake",
        ),
        ("jdbc:postgresql:lake", {"user": "me"}, f"{OURS}://me@localhost/lake"),
        ("jdbc:postgresql://db/lake?ssl=true", {}, f"{OURS}://db/lake?sslmode=verify-full"),
        ("jdbc:postgresql://db/lake?ssl=false", {}, f"{OURS}://db/lake"),
        (
            "jdbc:postgresql://db/lake?ssl=true&sslmode=require",
            {},
            f"{OURS}://db/lake?sslmode=require",
        ),
        (
            "jdbc:postgresql://db/lake?currentSchema=iceberg",
            {},
            f"{OURS}://db/lake?options=-csearch_path%3Diceberg",
        ),
        (
            "jdbc:postgresql://one:5433,two:5434/lake?targetServerType=primary",
            {},
            f"{OURS}:///lake?host=one%3A5433&host=two%3A5434&target_session_attrs=read-write",
        ),
        (
            "jdbc:mariadb://db:3307/lake?user=me",
            {"password": "secret"},
            "mariadb+pymysql://me:secret@db:3307/lake",
        ),
        ("mysql+mysqldb://me@db/lake", {}, "mariadb+pymysql://me@db/lake"),
    ],
)
def test_an_address_names_its_place_whichever_client_it_was_written_for(
    uri: str, properties: Mapping[str, str], expected: str
) -> None:
    url = database_url(uri, properties)
    assert url.render_as_string(hide_password=False) == expected


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("jdbc:postgresql://db/lake?gssLib=hunter2", "JDBC parameter `gssLib`"),
        ("jdbc:oracle://db/lake?password=hunter2", "Oracle is not supported"),
        ("jdbc:mysql://db/lake?sslMode=hunter2", "parameter `sslMode`"),
        ("jdbc:h2:mem:hunter2", "no such kind of database: `h2`"),
        ("jdbc:", "expected"),
        ("postgresql://me:hunter2@db:port/lake", "expected"),
    ],
)
def test_an_address_that_is_of_no_use_is_refused_without_its_secrets(
    uri: str, expected: str
) -> None:
    with pytest.raises(SettingsError, match=expected) as refused:
        database_url(uri, {})
    assert "hunter2" not in str(refused.value)
