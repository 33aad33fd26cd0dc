"""What of a catalog's credentials travels with the tasks of a write: what ends soon, or nothing."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

from committer.ports.table_credentials import VendedCredential
from tests.support.servers.fake_rest_access import s3_keys
from workers.files.adls_files import AdlsAccess, VendedSignature
from workers.files.gcs_files import GcsAccess, VendedToken
from workers.files.s3_files import S3Access, VendedKeys
from workers.files.store_access import StoreAccess
from workers.files.vended_keys import access_of_tasks

OWN = S3Access("eu-central-1", "http://own:9000", is_virtual=True)


def access(properties: Mapping[str, str], expires_ms: int | None = 5) -> S3Access:
    credential = VendedCredential("s3://b", properties, expires_ms)
    return access_of_tasks(StoreAccess(OWN), credential).s3


def test_temporary_keys_travel() -> None:
    found = access(s3_keys("k", "hush", "token"))
    assert found == S3Access(
        OWN.region, OWN.endpoint_url, is_virtual=True, keys=VendedKeys("k", "hush", "token", 5)
    )
    assert pickle.loads(pickle.dumps(found)) == found
    assert "hush" not in repr(found)
    assert "token" not in repr(found).replace("session_token", "")


def test_a_token_of_google_that_ends_travels_with_the_place() -> None:
    own = StoreAccess(gcs=GcsAccess(is_anonymous=True))
    named = {"gcs.oauth2.token": "hush", "gcs.service.host": "http://gcs"}
    found = access_of_tasks(own, VendedCredential("", named, 5))
    assert found.gcs == GcsAccess("http://gcs", True, VendedToken("hush", 5))
    assert "hush" not in repr(found)
    assert access_of_tasks(own, VendedCredential("", named, None)).gcs == own.gcs
    assert access_of_tasks(own, VendedCredential("", {"gcs.service.host": "http://x"}, 5)) == own


def test_a_signature_of_azure_that_ends_travels_with_its_account() -> None:
    own = StoreAccess(adls=AdlsAccess("own", "host:1", "http"))
    named = {"adls.sas-token": "hush", "adls.account-name": "lake"}
    found = access_of_tasks(own, VendedCredential("", named, 5))
    signature = VendedSignature("lake", "hush", 5)
    assert found.adls == AdlsAccess("lake", "host:1", "http", signature)
    assert "hush" not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found
    assert access_of_tasks(own, VendedCredential("", named, None)).adls == own.adls
    nameless = VendedCredential("", {"adls.sas-token": "hush"}, 5)
    assert access_of_tasks(own, nameless).adls == own.adls


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
    own = StoreAccess(OWN)
    assert access_of_tasks(own, None) is own


def test_the_place_is_what_the_catalog_says() -> None:
    named = {"client.region": "r", "s3.endpoint": "http://s3", "s3.path-style-access": "true"}
    assert access(named) == S3Access("r", "http://s3", is_virtual=False)
    assert access({"s3.region": "q", **named}).region == "q"
