"""What of a catalog's credentials travels with the tasks of a write: what ends soon, or nothing."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

from committer.ports.table_credentials import VendedCredential
from tests.support.servers.fake_rest_access import s3_keys
from workers.s3_files import S3Access, VendedKeys
from workers.vended_keys import access_of_tasks

OWN = S3Access("eu-central-1", "http://own:9000", is_virtual=True)


def access(properties: Mapping[str, str], expires_ms: int | None = 5) -> S3Access:
    return access_of_tasks(OWN, VendedCredential("s3://b", properties, expires_ms))


def test_temporary_keys_travel() -> None:
    found = access(s3_keys("k", "hush", "token"))
    assert found == S3Access(
        OWN.region, OWN.endpoint_url, is_virtual=True, keys=VendedKeys("k", "hush", "token", 5)
    )
    assert pickle.loads(pickle.dumps(found)) == found
    assert "hush" not in repr(found)
    assert "token" not in repr(found).replace("session_token", "")


@pytest.mark.parametrize(
    ("properties", "expires_ms"),
    [
        (s3_keys("k", "hush"), 5),
        (s3_keys("k", "hush", "token"), None),
        ({"gcs.oauth2.token": "hush"}, 5),
        ({}, 5),
    ],
)
def test_keys_without_a_token_or_an_end_stay_on_the_driver(
    properties: Mapping[str, str], expires_ms: int | None
) -> None:
    found = access(properties, expires_ms)
    assert found == OWN
    assert b"hush" not in pickle.dumps(found)


def test_a_catalog_that_vends_nothing_changes_nothing() -> None:
    assert access_of_tasks(OWN, None) is OWN


def test_the_place_is_what_the_catalog_says() -> None:
    named = {"client.region": "r", "s3.endpoint": "http://s3", "s3.path-style-access": "true"}
    assert access(named) == S3Access("r", "http://s3", is_virtual=False)
    assert access({"s3.region": "q", **named}).region == "q"
