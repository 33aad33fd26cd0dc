"""The calls of Azure's blob service, which also serves the accounts of Data Lake Storage.
`committer.storage.object_storage` uses them.

* Create-only is `If-None-Match: *`, a replacement `If-Match`, both on Put Blob: content and
  condition are one request whatever the size. The service checks an MD5 of the content.
* An etag is of one write, never of a content.
* A listing is read whole, and sorted: with a hierarchical namespace its order is that of folders.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from urllib.parse import quote, urlencode

from committer.errors import FrazilError, NotFoundError
from committer.ports.storage import require_deleted, require_size
from committer.storage.adls.adls_location import ADLS_LOCATIONS, AdlsPlaces
from committer.storage.adls.blob_list import Page, milliseconds, read_page
from committer.storage.checksums import md5_of
from committer.storage.http.http_calls import HttpCalls
from committer.storage.http.http_client import (
    HTTP_ERRORS,
    HttpAnswer,
    HttpRequest,
    NoAnswerError,
    RefusalError,
    explain,
    whole_size,
)
from committer.storage.object_location import ObjectLocation
from committer.storage.object_storage import ReadRange, StoredObject, Write
from committer.storage.repeated_calls import Tries, failures_of_each

# A name of metadata has to be one of C# too.
MARK = "frazil_write"
_VERSION = "2023-11-03"
_ETAG = re.compile(r"[A-Za-z0-9]+")
_MESSAGE = re.compile(r"<Message>([^<\n]+)")
_ABSENT = frozenset({"BlobNotFound", "ResourceNotFound", "PathNotFound"})
_FAILED = frozenset({"BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet"})
# A folder of a hierarchical namespace is no object: there is nothing to delete.
_FOLDER = frozenset({"DirectoryIsNotEmpty", "ResourceTypeMismatch"})
_NAME = "no container can have this name: expected 3 to 63 lower-case letters, digits and hyphens"
_ADVICE = {
    "AccountIsDisabled": "the account is disabled",
    "AuthenticationFailed": "the key or token is wrong or has expired, or this machine's clock is"
    " wrong",
    "AuthorizationPermissionMismatch": "the identity or signature lacks the permission: grant it"
    " `Storage Blob Data Contributor` on the container",
    "BlobArchived": "the object is in the archive tier: bring it back, and keep tables out of it",
    "BlobImmutableDueToPolicy": "an immutability policy or a legal hold keeps the object: none may"
    " be on what Frazil writes",
    "ContainerNotFound": "there is no such container: create it, or correct the location",
    "InvalidAuthenticationInfo": "the token is wrong or has expired: renew it",
    "InvalidResourceName": _NAME,
    "KeyBasedAuthenticationNotPermitted": "the account takes no key and no signature of one: use an"
    " identity (`adls.tenant-id`, … or the machine's)",
    "LeaseIdMissing": "a lease is on the object: break it, because only Frazil may write there",
    "OutOfRangeInput": _NAME,
    "401": "the credentials are wrong or have expired: renew them",
    "403": "the identity or signature lacks the permission or has expired, or the account's network"
    " rules refuse this machine",
}


class AdlsApi:
    """One client of Azure's blob service."""

    locations = ADLS_LOCATIONS

    def __init__(self, calls: HttpCalls, places: AdlsPlaces) -> None:
        self._calls = calls
        self._places = places

    def can_be_etag(self, etag: str) -> bool:
        return _ETAG.fullmatch(etag) is not None

    async def read(self, what: str, at: ObjectLocation, part: ReadRange) -> bytes:
        def check(answer: HttpAnswer) -> None:
            if not _is_folder(answer):
                require_size(what, whole_size(answer), part.size_bytes_max)

        headers = {} if part.is_whole else {"Range": part.header}
        try:
            return await self._calls.send(self._request("GET", at, headers, check=check), _content)
        except HTTP_ERRORS as error:
            if isinstance(error, RefusalError) and error.status == 416:
                return b""  # the range begins behind the object's end
            raise _explain(error, "GET", what) from error

    async def describe(self, what: str, at: ObjectLocation) -> StoredObject:
        async def read(answer: HttpAnswer) -> StoredObject:
            return _described(at.key, answer)

        try:
            return await self._calls.send(self._request("HEAD", at, {}), read)
        except HTTP_ERRORS as error:
            raise _explain(error, "HEAD", what) from error

    async def write(self, what: str, write: Write, tries: Tries) -> str | None:
        headers = {
            **_condition(write.etag),
            "Content-MD5": await md5_of(write.content),
            "Content-Type": "application/octet-stream",
            "x-ms-blob-type": "BlockBlob",
            f"x-ms-meta-{MARK}": write.mark,
        }
        request = self._request("PUT", write.at, headers, write.content)
        try:
            return await self._calls.send(request, _written, tries)
        except HTTP_ERRORS as error:
            is_absent = write.etag is not None and code_of(error) in _ABSENT
            if is_absent or code_of(error) in _FAILED:
                return None
            raise _explain(error, "PUT", what) from error

    async def delete(self, places: Mapping[ObjectLocation, str]) -> None:
        failures = await failures_of_each(
            [*places.items()], self._delete, at_once_max=self._calls.at_once_max
        )
        require_deleted({what: error for (_, what), error in failures}, places.values())

    async def _delete(self, place: tuple[ObjectLocation, str]) -> None:
        at, what = place
        request = self._request("DELETE", at, {"x-ms-delete-snapshots": "include"})
        try:
            await self._calls.send(request, _deleted)
        except HTTP_ERRORS as error:
            if code_of(error) not in (_ABSENT | _FOLDER):
                raise _explain(error, "DELETE", what) from error

    async def list(self, what: str, folder: ObjectLocation) -> AsyncIterator[StoredObject]:
        found: list[StoredObject] = []
        async for page in self._pages(what, folder):
            found += page.objects
        for one in sorted(found, key=lambda stored: stored.key):
            yield one

    async def names(self, what: str, start: ObjectLocation) -> Sequence[str]:
        found: set[str] = set()
        async for page in self._pages(what, start, delimiter="/"):
            found.update(one.key for one in page.objects)
            found.update(page.folders)
        return list(found)

    async def _pages(self, what: str, folder: ObjectLocation, **query: str) -> AsyncIterator[Page]:
        while True:
            try:
                page = await self._calls.send(self._page(folder, query), read_page)
            except HTTP_ERRORS as error:
                raise _explain(error, "LIST", what) from error
            yield page
            query["marker"] = page.marker
            if not page.marker:
                return

    def _page(self, folder: ObjectLocation, query: Mapping[str, str]) -> HttpRequest:
        asked = {
            "restype": "container",
            "comp": "list",
            "include": "metadata",
            "maxresults": str(self._calls.limits.listed_max),
            "prefix": folder.key,
            **query,
        }
        given = {name: text for name, text in asked.items() if text}
        url = f"{self._places.blob_url(folder.bucket)}?{urlencode(given, quote_via=quote)}"
        return HttpRequest("GET", url, {"x-ms-version": _VERSION})

    def _request(
        self,
        method: str,
        at: ObjectLocation,
        headers: Mapping[str, str],
        body: bytes = b"",
        check: Callable[[HttpAnswer], None] | None = None,
    ) -> HttpRequest:
        url = f"{self._places.blob_url(at.bucket)}/{quote(at.key, safe='/')}"
        return HttpRequest(method, url, {"x-ms-version": _VERSION, **headers}, body, check)


def _condition(etag: str | None) -> dict[str, str]:
    return {"If-None-Match": "*"} if etag is None else {"If-Match": f'"{etag}"'}


# --- Answers -------------------------------------------------------------------------------------


def refusal_of(answer: HttpAnswer) -> RefusalError:
    """Read the code, and the first line of `<Error><Message>…`."""
    code = answer.headers.get("x-ms-error-code", "")
    body = answer.body.decode(errors="replace")
    found = _MESSAGE.search(body)
    return RefusalError(answer, code, found[1] if found else "" if code else body)


def code_of(error: Exception) -> str:
    """Return the service's error code; empty if the service has not answered."""
    return error.code if isinstance(error, RefusalError) else ""


def _explain(error: Exception, call: str, what: str) -> FrazilError:
    if code_of(error) in _ABSENT:
        return NotFoundError(f"`{what}` does not exist")
    return explain(error, f"{call} `{what}`", _ADVICE)


def _is_folder(answer: HttpAnswer) -> bool:
    headers = answer.headers
    return (
        headers.get("x-ms-resource-type") == "directory"
        or headers.get("x-ms-meta-hdi_isfolder", "").lower() == "true"
    )


def _as_absent(answer: HttpAnswer) -> None:
    """Refuse a folder of a hierarchical namespace, which answers as an empty object."""
    if _is_folder(answer):
        raise RefusalError(answer, "BlobNotFound", "it is a folder")


async def _content(answer: HttpAnswer) -> bytes:
    _as_absent(answer)
    expected = answer.headers.get("content-md5") if answer.status == 200 else None
    if expected is not None and await md5_of(answer.body) != expected:
        raise NoAnswerError("the object came in damaged: it has another checksum")
    return answer.body


def _described(key: str, answer: HttpAnswer) -> StoredObject:
    _as_absent(answer)
    try:
        return StoredObject(
            key,
            int(answer.header("content-length")),
            milliseconds(answer.header("last-modified")),
            answer.header("etag").strip('"'),
            answer.headers.get(f"x-ms-meta-{MARK}"),
        )
    except ValueError as error:
        raise NoAnswerError(f"another server has answered: {error}") from error


async def _written(answer: HttpAnswer) -> str:
    if answer.status != 201:
        raise NoAnswerError(f"another server has answered, with {answer.status}")
    return answer.header("etag").strip('"')


async def _deleted(answer: HttpAnswer) -> None:
    if answer.status != 202:
        raise NoAnswerError(f"another server has answered, with {answer.status}")
