"""A storage before a real adapter that asks a policy first, as S3 would."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from committer.errors import AccessError
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage
from tests.deploy.policies import BUCKET, CREATES, REPLACES, Policy


class PolicedStorage:
    """The `Storage` port around `inner`. `memory://x/y` is `x/y` in the bucket.

    One of the policies has to allow a call.
    """

    def __init__(self, inner: Storage, *policies: Policy) -> None:
        self.inner = inner
        self._policies = policies
        self.refused: list[str] = []
        self.asked: set[str] = set()

    def _ask(self, action: str, location: str, context: Mapping[str, str] | None = None) -> None:
        self.asked.add(action)
        key = location.partition(":")[2].lstrip("/")
        resource = BUCKET if action == "s3:ListBucket" else f"{BUCKET}/{key}"
        if not any(policy.allows(action, resource, context) for policy in self._policies):
            self.refused.append(f"{action} {resource}")
            raise AccessError(self.refused[-1])

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        self._ask("s3:GetObject", location)
        return await self.inner.get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )

    async def head(self, location: str) -> ObjectInfo:
        self._ask("s3:GetObject", location)
        return await self.inner.head(location)

    async def create(self, objects: Sequence[NewObject]) -> None:
        for created in objects:
            self._ask("s3:PutObject", created.location, CREATES)
        await self.inner.create(objects)

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        self._ask("s3:PutObject", location, CREATES if etag is None else REPLACES)
        return await self.inner.replace(location, content, etag=etag)

    async def delete(self, locations: Sequence[str]) -> None:
        for location in locations:
            self._ask("s3:DeleteObject", location)
        await self.inner.delete(locations)

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        self._ask("s3:ListBucket", prefix)
        async for info in self.inner.list(prefix, skips=skips):
            yield info

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        self._ask("s3:ListBucket", folder)
        return await self.inner.names(folder, starts_with=starts_with)

    async def probe(self, prefix: str) -> None:
        await self.inner.probe(prefix)

    async def close(self) -> None:
        await self.inner.close()
