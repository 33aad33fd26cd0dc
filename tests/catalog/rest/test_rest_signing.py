"""Requests to the REST endpoints of AWS, as far as they can be shown without AWS: the signature."""

from __future__ import annotations

import json

import pytest
from multidict import CIMultiDict

from committer.backends.catalog_kinds import open_catalog
from committer.catalog.catalog_properties import CatalogProperties
from committer.real_world import RealWorld
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest_access import SigV4Check
from tests.support.servers.fake_rest_tables import Refusal
from tests.support.servers.http_proxy import Answer, HttpProxy

ARN = "arn%3Aaws%3As3tables%3Aeu-central-1%3A111122223333%3Abucket%2Flake"


@pytest.mark.parametrize("name", ["glue", "s3tables"])
async def test_a_path_with_the_name_of_a_table_bucket_is_signed_as_it_is_sent(name: str) -> None:
    """As AWS' own REST endpoints want it: botocore's signature of the bytes that came in."""
    check = SigV4Check("key", "hush", "eu-central-1", name)
    config = json.dumps({"defaults": {}, "overrides": {"prefix": ARN}}).encode()
    properties = {
        "warehouse": "arn:aws:s3tables:eu-central-1:111122223333:bucket/lake",
        "rest.sigv4-enabled": "true",
        "rest.signing-region": "eu-central-1",
        "rest.signing-name": name,
        "rest.access-key-id": "key",
        "rest.secret-access-key": "hush",
    }
    async with HttpProxy("http://127.0.0.1:1") as proxy:
        proxy.plan(b"/v1/config", Answer(200, config, "application/json"))
        for body in (b'{"namespaces": [["db"]]}', b'{"namespaces": []}'):
            proxy.plan(b"/namespaces", Answer(200, body, "application/json"))
        catalog = await open_catalog(
            CatalogProperties("frazil", {"uri": f"{proxy.url}/iceberg", **properties}),
            MemoryStorage(world=RealWorld()),
            RealWorld(),
            create=False,
        )
        assert await catalog.list_namespaces() == [("db",)]
        # The protocol has no word for it.
        assert catalog.capabilities.maintains_tables is (name == "s3tables")
        await catalog.close()
        assert f"/iceberg/v1/{ARN}/namespaces" in proxy.received[-1].path
        for request in proxy.received:
            url = f"{proxy.url}{request.path}"
            check.check(request.method, url, CIMultiDict(request.headers), request.body)
        with pytest.raises(Refusal, match="signature is another"):
            last = proxy.received[-1]
            url = f"{proxy.url}{last.path.replace('%2F', '/')}"
            check.check(last.method, url, CIMultiDict(last.headers), last.body)
