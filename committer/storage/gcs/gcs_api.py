"""The calls of Google Cloud Storage, by its JSON API, for `committer.storage.object_storage`.

* The condition of a write is the generation of the object: `ifGenerationMatch`, 0 for an object
  that is absent. It is the etag of the port; generations never come back.
* Metadata, content and condition are one request whatever the size, so that nothing is left behind
  and no condition is looked at early (an upload in pieces has it in its first request). The server
  checks an MD5 of the content.
* An absent object and an absent bucket have one answer, so a bucket is asked for once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from committer.errors import AccessError, NotFoundError, StorageUnavailableError
from committer.ports.storage import require_deleted, require_size
from committer.storage.checksums import md5_of
from committer.storage.gcs.gcs_location import GCS_LOCATIONS
from committer.storage.http.http_calls import HttpCalls
from committer.storage.http.http_client import (
    HTTP_ERRORS,
    HttpAnswer,
    HttpRequest,
    NoAnswerError,
    RefusalError,
    explain,
    judge,
    whole_size,
)
from committer.storage.object_location import ObjectLocation
from committer.storage.object_storage import ReadRange, StoredObject, Write
from committer.storage.repeated_calls import Failure, Tries, failures_of_each

MARK = "frazil-write"
_DESCRIBED = "name,size,updated,generation,metadata"
_THROTTLED = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
_KEPT = "a retention policy or a hold keeps the object: none may be on what Frazil writes"
_ADVICE = {
    "accountDisabled": "the project's billing is disabled",
    "objectUnderActiveHold": _KEPT,
    "retentionPolicyNotMet": _KEPT,
    "userProjectMissing": "the bucket lets the reader pay, which Frazil does not do",
    "401": "the credentials are wrong or have expired: renew them",
    "403": "the account lacks the permission: grant it `roles/storage.objectAdmin` on the bucket",
}


class GcsApi:
    """One client of Google Cloud Storage, or of a server that speaks its JSON API."""

    locations = GCS_LOCATIONS

    def __init__(self, calls: HttpCalls, host: str) -> None:
        self._calls = calls
        self._host = host.rstrip("/")
        self._known_buckets: set[str] = set()

    def can_be_etag(self, etag: str) -> bool:
        return etag.isascii() and etag.isdigit() and int(etag) > 0

    async def read(self, what: str, at: ObjectLocation, part: ReadRange) -> bytes:
        def check(answer: HttpAnswer) -> None:
            require_size(what, whole_size(answer), part.size_bytes_max)

        url = self._url("storage/v1", at, {"alt": "media"})
        # The bytes as they are stored: Google would decompress what is described as gzip.
        headers = {"Accept-Encoding": "gzip"}
        if not part.is_whole:
            headers["Range"] = part.header
        try:
            return await self._calls.send(HttpRequest("GET", url, headers, check=check), _content)
        except HTTP_ERRORS as error:
            if _status_of(error) == 416:  # the range begins behind the object's end
                return b""
            if _status_of(error) != 404:
                raise explain(error, f"GET `{what}`", _ADVICE) from error
        await self.describe(what, at)
        raise StorageUnavailableError(f"GET `{what}`: it came meanwhile")

    async def describe(self, what: str, at: ObjectLocation) -> StoredObject:
        url = self._url("storage/v1", at, {"fields": _DESCRIBED})
        try:
            return await self._calls.send(HttpRequest("GET", url), _described)
        except HTTP_ERRORS as error:
            if not _is_absent(error):
                raise explain(error, f"HEAD `{what}`", _ADVICE) from error
        await self._require_bucket(what, at.bucket)
        raise NotFoundError(f"`{what}` does not exist")

    async def write(self, what: str, write: Write, tries: Tries) -> str | None:
        checksum = await md5_of(write.content)
        try:
            return (await self._calls.send(self._upload(write, checksum), _described, tries)).etag
        except HTTP_ERRORS as error:
            if not (_status_of(error) == 412 or _is_absent(error)):
                raise explain(error, f"PUT `{what}`", _ADVICE) from error
        await self._require_bucket(what, write.at.bucket)
        return None

    async def delete(self, places: Mapping[ObjectLocation, str]) -> None:
        failures = await failures_of_each(
            [*places.items()], self._delete, at_once_max=self._calls.at_once_max
        )
        require_deleted({what: error for (_, what), error in failures}, places.values())

    async def _delete(self, place: tuple[ObjectLocation, str]) -> None:
        at, what = place
        try:
            await self._calls.send(HttpRequest("DELETE", self._url("storage/v1", at, {})), _deleted)
        except HTTP_ERRORS as error:
            if not _is_absent(error):
                raise explain(error, f"DELETE `{what}`", _ADVICE) from error
            await self._require_bucket(what, at.bucket)

    async def list(self, what: str, folder: ObjectLocation) -> AsyncIterator[StoredObject]:
        async for page in self._pages(what, folder):
            for item in page.get("items", ()):
                yield _stored(item)

    async def names(self, what: str, start: ObjectLocation) -> Sequence[str]:
        found: set[str] = set()
        async for page in self._pages(what, start, delimiter="/"):
            found.update(item["name"] for item in page.get("items", ()))
            found.update(page.get("prefixes", ()))
        return list(found)

    # --- Requests ---

    def _url(self, api: str, at: ObjectLocation, query: Mapping[str, str]) -> str:
        return self._bucket_url(api, at.bucket, f"/o/{quote(at.key, safe='')}", query)

    def _bucket_url(self, api: str, bucket: str, rest: str, query: Mapping[str, str]) -> str:
        return f"{self._host}/{api}/b/{quote(bucket)}{rest}?{urlencode(query, quote_via=quote)}"

    def _upload(self, write: Write, checksum: str) -> HttpRequest:
        """Make the upload of a whole object: two parts, of which the first describes it."""
        described = {
            "name": write.at.key,
            "contentType": "application/octet-stream",
            "md5Hash": checksum,
            "metadata": {MARK: write.mark},
        }
        bounds = f"--{write.mark}"
        body = b"".join(
            (
                f"{bounds}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode(),
                orjson.dumps(described),
                f"\r\n{bounds}\r\nContent-Type: application/octet-stream\r\n\r\n".encode(),
                write.content,
                f"\r\n{bounds}--\r\n".encode(),
            )
        )
        query = {"uploadType": "multipart", "ifGenerationMatch": write.etag or "0"}
        return HttpRequest(
            "POST",
            self._bucket_url("upload/storage/v1", write.at.bucket, "/o", query),
            {"Content-Type": f"multipart/related; boundary={write.mark}"},
            body,
        )

    async def _pages(
        self, what: str, folder: ObjectLocation, **query: str
    ) -> AsyncIterator[dict[str, Any]]:
        query |= {"maxResults": str(self._calls.limits.listed_max)}
        while True:
            page = await self._page(what, folder, query)
            yield page
            query["pageToken"] = page.get("nextPageToken", "")
            if not query["pageToken"]:
                return

    async def _page(
        self, what: str, folder: ObjectLocation, query: Mapping[str, str]
    ) -> dict[str, Any]:
        fields = "items(name,size,updated,generation),prefixes,nextPageToken"
        asked = {"prefix": folder.key, "fields": fields, **query}
        given = {name: value for name, value in asked.items() if value}
        url = self._bucket_url("storage/v1", folder.bucket, "/o", given)
        try:
            page = await self._calls.send(HttpRequest("GET", url), _json)
        except HTTP_ERRORS as error:
            if _is_absent(error):
                raise AccessError(
                    f"LIST `{what}`: there is no bucket `{folder.bucket}`: create it, or correct"
                    " the location"
                ) from error
            raise explain(error, f"LIST `{what}`", _ADVICE) from error
        self._known_buckets.add(folder.bucket)
        return page

    async def _require_bucket(self, what: str, bucket: str) -> None:
        """Ask once for a bucket of which an object is absent. Errors: `AccessError`."""
        if bucket not in self._known_buckets:
            await self._page(what, ObjectLocation(bucket, ""), {"maxResults": "1"})


# --- Answers -------------------------------------------------------------------------------------


def refusal_of(answer: HttpAnswer) -> RefusalError:
    """Read `{"error": {"message": …, "errors": [{"reason": …}]}}`."""
    try:
        error = orjson.loads(answer.body)["error"]
        found = error.get("errors") or [{}]
        return RefusalError(answer, str(found[0].get("reason", "")), str(error["message"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, IndexError):
        return RefusalError(answer, "", answer.body.decode(errors="replace"))


def judge_gcs(error: Exception) -> Failure:
    usual = judge(error)
    if isinstance(error, RefusalError):
        if error.code in _THROTTLED:
            return Failure(is_passing=True, is_slow_down=True, is_refusal=True)
        if error.status == 409:  # another write of the object was under way
            return Failure(is_passing=True, is_slow_down=True, is_refusal=usual.is_refusal)
    return usual


def _is_absent(error: Exception) -> bool:
    """Return whether the object or its bucket is absent. Without a reason of Google's another
    server has said so."""
    return isinstance(error, RefusalError) and error.status == 404 and bool(error.code)


def _status_of(error: Exception) -> int:
    return error.status if isinstance(error, RefusalError) else 0


async def _deleted(answer: HttpAnswer) -> None:
    """Take 204, and of an emulator JSON."""
    if answer.status != 204:
        _parsed(answer)


def _parsed(answer: HttpAnswer) -> Any:
    try:
        return orjson.loads(answer.body)
    except orjson.JSONDecodeError as error:
        raise NoAnswerError("another server has answered, and not in JSON") from error


async def _json(answer: HttpAnswer) -> dict[str, Any]:
    found = _parsed(answer)
    if not isinstance(found, dict):
        raise NoAnswerError("another server has answered, and not with an object of JSON")
    return found


async def _described(answer: HttpAnswer) -> StoredObject:
    return _stored(await _json(answer))


async def _content(answer: HttpAnswer) -> bytes:
    """Compare a whole object with the MD5 that came with it: `crc32c=…,md5=…`."""
    for one in answer.headers.get("x-goog-hash", "").split(","):
        name, _, expected = one.strip().partition("=")
        if name == "md5" and answer.status == 200 and await md5_of(answer.body) != expected:
            raise NoAnswerError("the object came in damaged: it has another checksum")
    return answer.body


def _stored(item: Mapping[str, Any]) -> StoredObject:
    try:
        updated = datetime.fromisoformat(item["updated"])
        return StoredObject(
            item["name"],
            int(item["size"]),
            int(updated.timestamp() * 1000),
            str(int(item["generation"])),
            (item.get("metadata") or {}).get(MARK),
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise NoAnswerError(f"another server has answered: {error!r} in an object") from error
