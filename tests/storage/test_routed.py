"""Deletions in groups: each group reports its own objects."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from committer.errors import AccessError, StorageUnavailableError, UndeletedError
from committer.storage.routed import delete_groups


async def test_each_object_that_remains_is_reported_whichever_group_it_is_in() -> None:
    denied, away = AccessError("denied"), StorageUnavailableError("away")
    deleted: list[str] = []

    async def delete(group: Sequence[str]) -> None:
        if group == ["x/a", "x/b"]:
            deleted.append("x/a")
            raise UndeletedError({"x/b": denied})
        if group == ["y/a", "y/b"]:
            raise away
        deleted.extend(group)

    with pytest.raises(UndeletedError) as caught:
        await delete_groups([["x/a", "x/b"], ["y/a", "y/b"], ["z/a"]], delete)
    assert caught.value.failures == {"x/b": denied, "y/a": away, "y/b": away}
    assert deleted == ["x/a", "z/a"]
