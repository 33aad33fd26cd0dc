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


async def seal_signed(
    key_file: KeyFile | None, request: CommitRequest, manifests: Sequence[InlineManifest]
) -> EncodedRequest:
    """Sign with the first key that may, and seal. Without a file of keys, it is not signed.

    Errors: `PublishError` where no key may; as `KeyFile.keys`.
    """
    if key_file is None:
        return seal_request(request, manifests)
    key = choose_key(await key_file.keys(age_s_max=_KEYS_S_MAX), request)
    if key is None:
        raise PublishError(
            f"no key of the file that `{SETTING}` names is for table `{request.identifier}`,"
            f" producer `{request.producer.id}` and operation `{request.operation}`"
        )
    time = {"not_after_ms": request.published_at_ms + VALID_MS}
    return sign_request(request.model_copy(update=time), key, manifests)
