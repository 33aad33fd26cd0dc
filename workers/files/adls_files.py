"""Data files on Azure, by pyarrow's own client. Runs on executors.

The signature is one that a catalog has vended for the table, for a short time. Else it is the
executor's `AZURE_STORAGE_KEY` or `AZURE_STORAGE_SAS_TOKEN`, both only of the account that its
`AZURE_STORAGE_ACCOUNT` names; else the client finds an identity as every tool of Azure does.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from committer.errors import UnsupportedError
from committer.iceberg.values.locations import AZURE_CLOUDS
from workers.files.object_files import ObjectFiles

if TYPE_CHECKING:
    from pyarrow import fs

_ADLS = re.compile(
    r"(?:abfss?|wasbs?)://(?P<container>[^/@]+)(?:@(?P<host>[^/@]+))?/(?P<key>.*)",
    re.DOTALL,
)
_HOST = re.compile(r"(?P<account>[a-z0-9-]{1,63})\.(?:dfs|blob)\.(?P<cloud>.+)")
# Each micro-batch may bring a new signature; the clients of the old ones are of no use.
_CLIENTS_MAX = 8


@dataclass(frozen=True, slots=True)
class VendedSignature:
    """A shared access signature that a catalog has vended for the files of one table: the only one
    that travels with a task. It is shown to its own account alone, and has an end.
    """

    account: str
    text: str = field(repr=False)
    expires_ms: int


@dataclass(frozen=True, slots=True)
class AdlsAccess:
    """The addresses of accounts on Azure, as the driver knows them: what travels with the tasks.
    `account`: of a location that names none. An empty text leaves the usual.
    """

    account: str = ""
    authority: str = ""
    scheme: str = ""
    signature: VendedSignature | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """The account of a location, and the end of its hosts' names or `host:port`."""

    account: str
    authority: str


class AdlsFiles(ObjectFiles):
    """Objects of one account by location: `abfss://container@account.dfs.core.windows.net/…`."""

    def __init__(self, location: str, access: AdlsAccess) -> None:
        super().__init__(_connect(_place(location, access), access), adls_path)


def is_adls(location: str) -> bool:
    """Return whether a location is on Azure."""
    return _ADLS.fullmatch(location) is not None


def adls_path(location: str) -> str:
    """Return `container/key`, the key letter for letter.
    Errors: `UnsupportedError` for any other place."""
    match = _ADLS.fullmatch(location)
    if match is None:
        raise UnsupportedError(f"location {location}: expected abfss://CONTAINER@ACCOUNT…/…")
    return f"{match['container']}/{match['key']}"


def _place(location: str, access: AdlsAccess) -> _Place:
    """Find the account. Errors: `UnsupportedError` for a host that is not Azure's: no credential is
    sent to it, whatever a table's metadata names."""
    match = _ADLS.fullmatch(location)
    host = (match["host"] if match else None) or f"{access.account}.dfs.{AZURE_CLOUDS[0]}"
    named = _HOST.fullmatch(host.lower())
    if named is None or not (access.authority or named["cloud"] in AZURE_CLOUDS):
        raise UnsupportedError(
            f"location {location}: expected abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/…, or"
            " without @… where `adls.account-name` says the account"
        )
    return _Place(named["account"], access.authority or f".blob.{named['cloud']}")


@lru_cache(maxsize=_CLIENTS_MAX)
def _connect(place: _Place, access: AdlsAccess) -> fs.AzureFileSystem:
    """Connect once a process."""
    from pyarrow import fs  # a process that only names the store loads no Arrow

    return fs.AzureFileSystem(
        place.account,
        blob_storage_authority=place.authority,
        # Where pyarrow asks whether the account has folders; an emulator answers at one address.
        dfs_storage_authority=place.authority.replace(".blob.", ".dfs.", 1),
        blob_storage_scheme=access.scheme or None,
        dfs_storage_scheme=access.scheme or None,
        **_secret(place.account, access.signature),
    )


def _secret(account: str, signature: VendedSignature | None) -> dict[str, str]:
    """Return what opens the account, by pyarrow's names."""
    if signature is not None and signature.account == account:
        return _signed(signature.text)
    if os.environ.get("AZURE_STORAGE_ACCOUNT") != account:
        return {}
    if key := os.environ.get("AZURE_STORAGE_KEY"):
        return {"account_key": key}
    text = os.environ.get("AZURE_STORAGE_SAS_TOKEN")
    return _signed(text) if text else {}


def _signed(text: str) -> dict[str, str]:
    # Without its question mark pyarrow takes it for a part of the path.
    return {"sas_token": f"?{text.removeprefix('?')}"}
