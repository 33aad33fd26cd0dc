"""URLs in messages: no user, no password and no option is shown, and the place still is."""

from __future__ import annotations

import pytest

from committer.url_text import without_secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("rediss://user:secret@host:6379/0?option=secret", "rediss://host:6379/0"),
        ("redis://user:sec@ret@host/0", "redis://host/0"),
        ("redis://:secret@[::1]:6379", "redis://[::1]:6379"),
        ("unix:///run/redis.sock?password=secret", "unix:///run/redis.sock"),
        ("sqlite:////srv/catalog.db", "sqlite:////srv/catalog.db"),
        ("sqlite:////srv/team@home#1/catalog.db?mode=ro", "sqlite:////srv/team@home#1/catalog.db"),
        ("sqlite:///relative.db?timeout=5", "sqlite:///relative.db"),
        ("dynamodb://", "dynamodb://"),
        ("dynamodb://iceberg", "dynamodb://iceberg"),
        (
            "postgresql+psycopg://user:secret@db.example/catalog",
            "postgresql+psycopg://db.example/catalog",
        ),
        (
            "jdbc:postgresql://user:secret@db.example/catalog?password=secret",
            "jdbc:postgresql://db.example/catalog",
        ),
    ],
)
def test_a_url_is_shown_without_user_password_and_options(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret#1@host/catalog",
        "postgresql://user:12#secret@host/catalog",
        "postgresql://user:12/secret@host/catalog",
        "postgresql://user:12?secret@host/catalog",
        "jdbc:postgresql://user:12/secret@host/catalog",
        "jdbc:secret",
        "redis://host:port/0",
        "user:secret@host",
        "secret",
    ],
)
def test_a_url_that_may_show_a_part_of_a_password_is_not_shown(url: str) -> None:
    assert "secret" not in without_secrets(url)
