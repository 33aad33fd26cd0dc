"""The credentials for a table's files, as the answers of REST catalogs name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from committer.catalog.vended_credentials import (
    read_credentials,
    table_folders,
    without_secrets_of,
)
from committer.errors import AccessError
from committer.ports.table_credentials import VendedCredential
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_metadata
from tests.support.servers.fake_rest_access import REMOTE_SIGNING, adls_keys, gcs_keys, s3_keys

HOST = "a.dfs.core.windows.net"
FLIGHTS = TableIdentifier(("db",), "flights")


def read(
    config: Mapping[str, Any], *storage_credentials: tuple[str, Mapping[str, Any]]
) -> tuple[VendedCredential, ...]:
    listed = [{"prefix": prefix, "config": own} for prefix, own in storage_credentials]
    return read_credentials(FLIGHTS, config, listed)


def test_what_has_a_prefix_goes_before_what_the_configuration_says() -> None:
    config = {**s3_keys("c", "hush", "token", expires_ms=5), "s3.endpoint": "http://s3:9000"}
    general, special = read(config, ("s3://b/t", s3_keys("p", "hush-2")))
    assert general == VendedCredential("", config, 5)
    # Neither the token nor the end of the other pair of keys is taken for this one's.
    own = {**s3_keys("p", "hush-2"), "s3.endpoint": "http://s3:9000"}
    assert special == VendedCredential("s3://b/t", own, None)


def test_every_store_has_its_keys_and_its_end() -> None:
    found = read(
        {},
        ("s3://b", s3_keys("k", "hush", "token", expires_ms=5)),
        ("gs://b", gcs_keys("token", expires_ms=6)),
        (
            "abfss://c@a.dfs.core.windows.net",
            adls_keys("a.dfs.core.windows.net", "s", expires_ms=7),
        ),
    )
    assert [one.expires_ms for one in found] == [5, 6, 7]
    azure = {"adls.sas-token": "s", "adls.account-name": "a"}
    assert {name: found[2].properties[name] for name in azure} == azure


def test_of_several_accounts_on_azure_the_prefix_says_which() -> None:
    keys = {**adls_keys("b.dfs.core.windows.net", "other"), **adls_keys(HOST, "s")}
    general, special = read(keys, (f"abfss://c@{HOST}/t", {"client.region": "r"}))
    assert general.properties["adls.account-name"] == "b"
    assert special.properties["adls.sas-token"] == "s"


@pytest.mark.parametrize("end", ["soon", "", "-1", "1.5", "9" * 30, None, 5])
def test_an_end_that_is_no_number_is_not_known(end: object) -> None:
    config = {**s3_keys("k", "hush"), "s3.session-token-expires-at-ms": end}
    (found,) = read(config)
    assert found.expires_ms is None


def test_nothing_vended_is_nothing() -> None:
    assert read({}) == ()
    assert read({"token": "hush", "io-impl": "x", "uri": "http://x"}) == ()
    assert read_credentials(FLIGHTS, {}, [{"prefix": None}, {"config": [1]}, {}]) == ()


def test_a_catalog_cannot_choose_a_profile_or_get_our_own_tokens() -> None:
    config = {"s3.profile-name": "admin", "gcs.service.host": "http://evil", "s3.region": "r"}
    assert read({**config, "adls.blob-storage-authority": "evil"}) == (
        VendedCredential("", {"s3.region": "r"}),
    )
    named = {"gcs.service.host": "http://gcs", **gcs_keys("token")}
    assert read(named) == (VendedCredential("", named),)


def test_remote_signing_is_refused_unless_there_are_keys() -> None:
    with pytest.raises(AccessError, match=r"db\.flights.*signing-enabled.*vended-cred"):
        read(REMOTE_SIGNING)
    (found,) = read({**REMOTE_SIGNING, **s3_keys("k", "hush")})
    assert found.properties["s3.access-key-id"] == "k"
    assert "s3.remote-signing-enabled" not in found.properties


def test_half_of_our_own_keys_is_never_mixed_with_vended_ones() -> None:
    own = {
        **s3_keys("own", "own-secret", "own-token"),
        "s3.region": "a",
        "client.region": "b",
        "gcs.oauth2.token": "own",
        "warehouse": "s3://b",
    }
    left = without_secrets_of({**s3_keys("k", "hush"), "client.region": "c"}, own)
    assert left == {"client.region": "b", "gcs.oauth2.token": "own", "warehouse": "s3://b"}
    assert without_secrets_of({"s3.endpoint": "http://s3"}, own) == own


def test_files_of_a_table_may_lie_elsewhere() -> None:
    metadata = build_metadata(
        location="s3://b/t",
        properties={"write.data.path": "s3://d/t/", "write.object-storage.path": "s3://o"},
    )
    assert table_folders(metadata) == ("s3://b/t", "s3://d/t", "s3://b/t/metadata", "s3://o")
