"""Seals requests, signed where there is a file of keys. When to publish is decided elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from committer.errors import PublishError
from committer.request.commit_request import CommitRequest
from committer.request.request_format import EncodedRequest, InlineManifest, seal_request
from committer.request.signature import VALID_MS, choose_key, sign_request
from committer.storage.inbox.key_file import SETTING, KeyFile

# How soon a key that was added or exchanged is used.
_KEYS_S_MAX = 60.0


class Sealer:
    """Seals the requests of one driver. Without a file of keys they are not signed."""

    def __init__(self, key_file: KeyFile | None) -> None:
        self._key_file = key_file

    async def seal(
        self, request: CommitRequest, manifests: Sequence[InlineManifest]
    ) -> EncodedRequest:
        """Sign with the first key that may, and seal.

        Errors: `PublishError` where no key may; as `KeyFile.keys`.
        """
        if self._key_file is None:
            return seal_request(request, manifests)
        key = choose_key(await self._key_file.keys(age_s_max=_KEYS_S_MAX), request)
        if key is None:
            raise PublishError(
                f"no key of the file that `{SETTING}` names is for table `{request.identifier}`,"
                f" producer `{request.producer.id}` and operation `{request.operation}`"
            )
        time = {"not_after_ms": request.published_at_ms + VALID_MS}
        return sign_request(request.model_copy(update=time), key, manifests)


def is_same_write(one: CommitRequest, other: CommitRequest) -> bool:
    """Return whether they differ in their times at most, and so in their signatures:
    a commit repeated.

    Whether the signature of the first is good is for the committer to say.
    """
    return _bare(one) == _bare(other)


def _bare(request: CommitRequest) -> CommitRequest:
    times = {"published_at_ms": 0, "not_after_ms": None}
    return request.model_copy(update={**times, "signature": None, "key_id": None})
