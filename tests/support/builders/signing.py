"""Keys and signed requests for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from committer.request.request_format import EncodedRequest, seal_request
from committer.request.signature import SigningKey, sign_request
from tests.support.builders.request_builders import changed_line, sealed_manifests

OLD = SigningKey("2026-10", b"o" * 32)
NEW = SigningKey("2026-11", b"n" * 32)
STRANGER = SigningKey("2026-10", b"s" * 32)


def print_keys(*keys: SigningKey) -> bytes:
    """Print a file of these keys."""
    return "\n".join(map(_print_key, keys)).encode()


def _print_key(key: SigningKey) -> str:
    lines = [f"[keys.{key.key_id}]", f'secret = "{key.secret.hex()}"']
    lines += [
        f"{name} = {list(patterns)}"
        for name, patterns in (
            ("tables", key.tables),
            ("producers", key.producers),
            ("operations", key.operations),
        )
    ]
    return "\n".join(lines)


def signed(
    sealed: EncodedRequest, key: SigningKey = OLD, *, not_after_ms: int | None = None
) -> EncodedRequest:
    """Sign the same request with this key."""
    request = sealed.request.model_copy(update={"not_after_ms": not_after_ms})
    return sign_request(request, key, sealed_manifests(sealed))


def bound(key: SigningKey, **patterns: Sequence[str]) -> SigningKey:
    """Restrict the key to these patterns."""
    changes: dict[str, Any] = {name: tuple(value) for name, value in patterns.items()}
    return replace(key, **changes)


def with_changes(sealed: EncodedRequest, **changes: object) -> EncodedRequest:
    """Return another line with the signature of the first: the work of a forger."""
    request = changed_line(sealed.request, **changes)
    return seal_request(request, sealed_manifests(sealed))
