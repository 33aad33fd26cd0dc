"""Opening a catalog: an empty one is made for a new house, never in place of one that is away."""

from __future__ import annotations

from pathlib import Path

import pytest

from committer.errors import CatalogUnavailableError
from committer.service.parts import RequestParts, open_known_catalog, open_request_parts
from committer.settings import QueueSettings, Settings
from tests.request_builders import build_request
from tests.table_builders import build_table


def parts_in(folder: Path) -> RequestParts:
    return open_request_parts(Settings(home=folder, queue=QueueSettings(url="none")))


async def test_catalog_of_a_new_house_is_made(tmp_path: Path) -> None:
    parts = parts_in(tmp_path / "home")
    catalog = await open_known_catalog(parts)
    assert await catalog.list_namespaces() == []
    await catalog.close()
    await parts.close()


async def test_no_empty_catalog_is_made_while_requests_wait_for_tables(tmp_path: Path) -> None:
    parts = parts_in(tmp_path)
    sealed = build_request(build_table(warehouse=f"file://{tmp_path}/warehouse"))
    await parts.inbox.put(sealed)
    for _ in range(2):
        with pytest.raises(CatalogUnavailableError, match=r"catalog\.db` does not exist, but"):
            await open_known_catalog(parts)
    await parts.inbox.delete([sealed.request.inbox_key])
    catalog = await open_known_catalog(parts)
    await catalog.close()
    await parts.close()
