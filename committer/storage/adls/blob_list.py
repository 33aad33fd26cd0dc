"""Reads a page of a listing of Azure's blob service, which is XML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import unquote
from xml.etree import ElementTree

from committer.storage.http.http_client import HttpAnswer, NoAnswerError
from committer.storage.object_storage import StoredObject


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a listing. `folders`: what a delimiter has cut; `marker`: of the next page, empty
    after the last."""

    objects: Sequence[StoredObject]
    folders: Sequence[str]
    marker: str


async def read_page(answer: HttpAnswer) -> Page:
    """Read a page. Errors: `NoAnswerError` for what is none."""
    try:
        root = ElementTree.fromstring(answer.body)  # noqa: S314  # expat bounds what entities make
        blobs = [_blob(element) for element in root.iter("Blob") if not _is_folder(element)]
        folders = [_key(element) for element in root.iter("BlobPrefix")]
    except (ElementTree.ParseError, ValueError, TypeError) as error:
        raise NoAnswerError(f"another server has answered: {error!r} in a listing") from error
    if root.tag != "EnumerationResults":
        raise NoAnswerError(f"another server has answered, with `{root.tag}`")
    return Page(blobs, folders, root.findtext("NextMarker") or "")


def _is_folder(blob: ElementTree.Element) -> bool:
    """Return whether it is a folder, which accounts with a hierarchical namespace list too."""
    properties = _part(blob, "Properties")
    return (
        properties.findtext("ResourceType") == "directory"
        or (blob.findtext("Metadata/hdi_isfolder") or "").lower() == "true"
    )


def _blob(blob: ElementTree.Element) -> StoredObject:
    properties = _part(blob, "Properties")
    return StoredObject(
        _key(blob),
        int(_text(properties, "Content-Length")),
        milliseconds(_text(properties, "Last-Modified")),
        _text(properties, "Etag").strip('"'),
    )


def _key(element: ElementTree.Element) -> str:
    name = _part(element, "Name")
    text = name.text or ""
    return unquote(text, errors="strict") if name.get("Encoded", "").lower() == "true" else text


def milliseconds(text: str) -> int:
    """Return the time of a header. Errors: `ValueError`."""
    return int(parsedate_to_datetime(text).timestamp() * 1000)


def _part(element: ElementTree.Element, name: str) -> ElementTree.Element:
    found = element.find(name)
    if found is None:
        raise ValueError(f"no `{name}`")
    return found


def _text(element: ElementTree.Element, name: str) -> str:
    return _part(element, name).text or ""
