"""Locations on Azure: `abfss://container@account.dfs.core.windows.net/key` and its other spellings,
and the address of a container's blobs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from committer.errors import SettingsError
from committer.iceberg.values.locations import AZURE_CLOUDS
from committer.storage.object_location import LocationForm, too_long

SCHEMES = ("abfss", "abfs", "wasbs", "wasb")
_HOST = re.compile(r"([a-z0-9-]{1,63})\.(?:dfs|blob)\.(.+)")


def _problem(key: str) -> str | None:
    # The service drops a dot at the end of a segment, and makes a slash of a backslash.
    if "\\" in key:
        return "no name on Azure may have a backslash"
    if any(part.endswith(".") for part in key.split("/")):
        return "no part of a name on Azure may end with a dot"
    return too_long(key, 1024)


ADLS_LOCATIONS = LocationForm(
    re.compile(
        r"(?:abfss?|wasbs?)://"
        r"(?P<bucket>[A-Za-z0-9$][A-Za-z0-9-]{0,62}(?:@[A-Za-z0-9.-]+(?::[0-9]+)?)?)"
        r"(?:/(?P<key>.*))?",
        re.IGNORECASE | re.DOTALL,
    ),
    "abfss://container@account.dfs.core.windows.net/key",
    _problem,
)


@dataclass(frozen=True, slots=True)
class AdlsPlaces:
    """The addresses of accounts. An empty text says nothing.

    `account`: the one that the credentials are for, and that a location without a host means.
    `authority`: of the blob endpoint: `.blob.core.windows.net` stands behind the account's name, a
    `host:port` (an emulator) before it, as the first part of the path.
    """

    account: str = ""
    authority: str = ""
    scheme: str = "https"

    def blob_url(self, bucket: str) -> str:
        """Return the URL of the container in `container@host`, or `container`.

        Errors: `SettingsError` for a host that is not Azure's, or of another account.
        """
        container, _, host = bucket.partition("@")
        account, suffix = self._account(host.lower()) if host else (self.account, AZURE_CLOUDS[0])
        if not account:
            raise SettingsError(
                f"location abfss://{bucket}: it names no account: write"
                " abfss://container@account.dfs.core.windows.net/… or set `adls.account-name`"
            )
        if self.account and account != self.account:
            raise SettingsError(
                f"location abfss://{bucket}: the credentials are of the account `{self.account}`"
                " (adls.account-name)"
            )
        if not self.authority:
            return f"{self.scheme}://{account}.blob.{suffix}/{container}"
        if self.authority.startswith("."):
            return f"{self.scheme}://{account}{self.authority}/{container}"
        return f"{self.scheme}://{self.authority}/{account}/{container}"

    def _account(self, host: str) -> tuple[str, str]:
        match = _HOST.fullmatch(host)
        if match is None or (not self.authority and match[2] not in AZURE_CLOUDS):
            raise SettingsError(
                f"location of the host `{host}`: expected account.dfs.core.windows.net, or that of"
                " another cloud of Azure; `adls.blob-storage-authority` names another server"
            )
        return match[1], match[2]
