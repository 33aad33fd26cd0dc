"""Signatures: what any client can compute, and everything that a forger may try."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from committer.errors import InvalidRequestError, SettingsError
from committer.reason import Reason
from committer.request.commit_request import Fingerprint
from committer.request.request_format import EncodedRequest, read_request, seal_request
from committer.request.signature import Keys, SigningKey, choose_key, parse_keys, verify
from tests.support.builders.request_builders import build_request, sealed_manifests
from tests.support.builders.signing import (
    NEW,
    OLD,
    STRANGER,
    bound,
    print_keys,
    signed,
    with_changes,
)
from tests.support.builders.table_builders import build_table

KEYS = {OLD.key_id: OLD, NEW.key_id: NEW}


def request(**line: Any) -> EncodedRequest:
    return build_request(build_table("db.flights", warehouse="memory://warehouse"), **line)


def refusal(sealed: EncodedRequest, keys: Keys = KEYS) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        verify(read_request(sealed.content), keys)
    return caught.value.reason


def test_what_a_key_has_signed_is_verified_by_it() -> None:
    for key in (OLD, NEW):
        verify(read_request(signed(request(), key).content), KEYS)


def test_a_client_needs_json_and_hmac_only() -> None:
    unsigned, _, manifest = request().content.partition(b"\n")
    document = json.loads(unsigned) | {"key-id": OLD.key_id, "signature": ""}
    mac = hmac.new(OLD.secret, json.dumps(document).encode(), hashlib.sha256)
    document["signature"] = f"hmac-sha256:{mac.hexdigest()}"
    verify(read_request(json.dumps(document).encode() + b"\n" + manifest), KEYS)


CHANGES: dict[str, dict[str, Any]] = {
    "epoch": {"epoch": 1},
    "attempt": {"nonce": request().request.nonce},
    "table uuid": {"table_uuid": request().request.attempt},
    "branch": {"branch": "audit"},
    "time": {"not_after_ms": 2_000_000_000_000},
    "key id": {"key_id": NEW.key_id},
    "fingerprint": {"fingerprint": Fingerprint(kind="spark-offsets", value="other")},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_line_that_was_changed_is_not_signed(what: str) -> None:
    right = signed(request(), not_after_ms=1_900_000_000_000)
    changed = with_changes(right, **CHANGES[what])
    assert changed.content != right.content
    assert refusal(changed) == Reason.SIGNATURE_INVALID


def test_a_manifest_that_was_exchanged_changes_the_line() -> None:
    right, other = signed(request()), request(record_count=11)
    line = right.request.model_copy(update={"manifests": other.request.manifests})
    assert refusal(seal_request(line, sealed_manifests(other))) == Reason.SIGNATURE_INVALID


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text.upper(),
        lambda text: "",
        lambda text: "hmac-sha256:",
        lambda text: text.removeprefix("hmac-sha256:"),
        lambda text: "hmac-sha512:" + text[12:],
        lambda text: "none:",
        lambda text: "\N{SNOWMAN}" * 70,
        lambda text: text + '","x":"',
        lambda text: "append",
    ],
)
def test_anything_but_the_signature_is_invalid(spoil: Any) -> None:
    right = signed(request())
    changed = with_changes(right, signature=spoil(right.request.signature))
    assert refusal(changed) == Reason.SIGNATURE_INVALID


def spelled(right: EncodedRequest, old: str, new: str) -> EncodedRequest:
    line = right.content[: right.body].replace(old.encode(), new.encode())
    assert line != right.content[: right.body]
    return read_request(line + right.content[right.body :])


def test_the_signature_stands_in_the_line_once_and_as_it_is() -> None:
    right = signed(request())
    text = right.request.signature or ""
    escaped = text.replace("h", "\\u0068")
    assert refusal(spelled(right, f'"{text}"', f'"{escaped}"')) == Reason.SIGNATURE_INVALID
    # Equal values, but other bytes than the signed ones.
    assert refusal(spelled(right, '"epoch":0', '"epoch": 0')) == Reason.SIGNATURE_INVALID
    # A key that stands twice is refused before: readers differ in which of the two they take.
    twice = f'"signature":"{text}","signature":"{text}"'
    for once, repeated in (
        (f'"signature":"{text}"', twice),
        ('"branch":"main"', '"branch":"audit","branch":"main"'),
    ):
        with pytest.raises(InvalidRequestError, match="twice"):
            spelled(right, once, repeated)


def test_an_empty_text_elsewhere_cannot_take_the_place_of_the_signature() -> None:
    right = signed(request(fingerprint=""))
    text = right.request.signature or ""
    moved = spelled(right, f'"signature":"{text}"', '"signature":""')
    moved = spelled(moved, '"value":""', f'"value":"{text}"')
    assert refusal(moved) == Reason.SIGNATURE_INVALID
    in_both = spelled(right, '"value":""', f'"value":"{text}"')
    assert refusal(in_both) == Reason.SIGNATURE_INVALID


def test_another_secret_under_the_same_id_signs_nothing() -> None:
    assert refusal(signed(request(), STRANGER)) == Reason.SIGNATURE_INVALID


def test_a_key_that_is_gone_is_unknown() -> None:
    assert refusal(signed(request(), OLD), {NEW.key_id: NEW}) == Reason.SIGNATURE_KEY_UNKNOWN


@pytest.mark.parametrize(
    ("patterns", "fits"),
    [
        ({"tables": ["db.flights"]}, True),
        ({"tables": ["sales.*", "db.*"]}, True),
        ({"tables": ["db"]}, False),
        ({"tables": ["DB.flights"]}, False),
        ({"tables": ["sales.*"]}, False),
        ({"producers": ["query-*"]}, True),
        ({"producers": ["other"]}, False),
        ({"operations": ["append"]}, True),
        ({"operations": ["overwrite"]}, False),
    ],
)
def test_a_key_signs_only_what_it_is_for(patterns: dict[str, list[str]], fits: bool) -> None:
    sealed, key = signed(request()), bound(OLD, **patterns)
    if fits:
        verify(sealed, {key.key_id: key})
    else:
        assert refusal(sealed, {key.key_id: key}) == Reason.SIGNATURE_KEY_NOT_ALLOWED


def test_a_forged_signature_does_not_tell_what_a_key_is_for() -> None:
    sealed = signed(request(), STRANGER)
    assert refusal(sealed, {OLD.key_id: bound(OLD, tables=["x"])}) == Reason.SIGNATURE_INVALID


# --- The file of keys ----------------------------------------------------------------------------


def test_the_file_of_keys_reads_back_in_its_order() -> None:
    keys = (bound(NEW, tables=["db.*"], operations=["append"]), OLD)
    assert tuple(parse_keys(print_keys(*keys), "here").values()) == keys


def test_the_first_key_of_the_file_that_may_sign_signs() -> None:
    keys = parse_keys(print_keys(bound(NEW, tables=["sales.*"]), OLD), "here")
    assert choose_key(keys, request().request) == OLD
    assert choose_key({NEW.key_id: keys[NEW.key_id]}, request().request) is None


SECRET = "ab" * 32


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "keys: expected a value, found none"),
        ("[keys]", "keys: expected at least 1, found 0"),
        (f"keys = {SECRET}", "not TOML"),
        (f'[keys.a]\nsecret = "{SECRET[2:]}"', "keys.a.secret: expected a text that matches"),
        (f'[keys.a]\nsecret = "{SECRET}a"', "keys.a.secret: expected a text that matches"),
        (f'[keys.a]\nsecret = "{SECRET}\\n"', "keys.a.secret: expected a text that matches"),
        (f'[keys.a]\nsecret = "{SECRET}"\ntable = ["x"]', "keys.a.table: expected no such key"),
        (
            f'[keys.a]\nsecret = "{SECRET}"\ntables = []',
            "keys.a.tables: expected at least 1, found 0",
        ),
        (f'[keys.a]\nsecret = "{SECRET}"\ntables = "*"', "keys.a.tables: expected a list"),
        (
            f'[keys.a]\nsecret = "{SECRET}"\noperations = ["drop"]',
            "keys.a.operations.0: expected '\\*', 'append'",
        ),
    ],
)
def test_a_wrong_file_of_keys_is_refused_without_its_secrets(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=f"here: .*{problem}") as caught:
        parse_keys(text.encode(), "here")
    assert SECRET[:16] not in str(caught.value)


def test_a_key_does_not_print_its_secret() -> None:
    assert "secret" not in repr(SigningKey("a", b"hush" * 8))
