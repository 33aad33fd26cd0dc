"""Opens Google Cloud Storage: its host, and how its requests are authorized."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from committer.ports.world import World
from committer.storage.gcs.gcs_api import GcsApi, judge_gcs, refusal_of
from committer.storage.gcs.google_tokens import GoogleTokens
from committer.storage.http.authorization import (
    Anonymous,
    Authorization,
    RenewedToken,
    StaticToken,
    Token,
)
from committer.storage.http.http_calls import HttpCalls
from committer.storage.http.http_client import HttpLimits
from committer.storage.object_storage import ObjectStorage
from committer.storage.repeated_calls import CallLimits

_HOST = "https://storage.googleapis.com"


@dataclass(frozen=True, slots=True)
class GcsOptions:
    """The address of Google Cloud Storage; an empty text leaves the usual."""

    host: str = ""
    token: str = field(default="", repr=False)
    token_ends_ms: int | None = None
    is_anonymous: bool = False
    http_limits: HttpLimits = field(default_factory=HttpLimits)


def open_gcs(
    options: GcsOptions, *, world: World, limits: CallLimits | None = None
) -> ObjectStorage:
    """Open a storage for `gs://bucket/key`; nothing is asked yet.

    `STORAGE_EMULATOR_HOST`, as for Google's own libraries, names an emulator, which wants no
    credentials.
    """
    emulator = os.environ.get("STORAGE_EMULATOR_HOST", "")
    if emulator and "://" not in emulator:
        emulator = f"http://{emulator}"
    calls = HttpCalls(
        _authorization(options, world, is_emulator=bool(emulator) and not options.host),
        world,
        limits or CallLimits(),
        options.http_limits,
        refusal=refusal_of,
        judge=judge_gcs,
    )
    return ObjectStorage(GcsApi(calls, options.host or emulator or _HOST), calls, world)


def _authorization(options: GcsOptions, world: World, *, is_emulator: bool) -> Authorization:
    if options.token:
        token = Token(options.token, options.token_ends_ms)
        return StaticToken(token, "gcs.oauth2.token", world)
    if options.is_anonymous or is_emulator:
        return Anonymous()
    return RenewedToken(GoogleTokens().fetch, world)
