"""The credentials that come with a table: handed on to the storage of its files, and renewed.

They come with every load and registration; a commit's answer has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from committer.catalog.rest.client.rest_answer import Answer
from committer.catalog.rest.client.rest_client import RestClient
from committer.catalog.rest.client.rest_options import RestOptions
from committer.catalog.rest.client.rest_paths import CREDENTIALS
from committer.catalog.rest.rest_table import TableAnswer, read_table_answer
from committer.catalog.vended_credentials import (
    DELEGATION_HEADER,
    VENDED,
    read_credentials,
    table_folders,
    without_secrets,
)
from committer.errors import SettingsError
from committer.ports.table_credentials import CredentialKeeper, VendedCredential
from committer.request.table_identifier import TableIdentifier


class RestCredentials:
    """Keeps what a server vends, if there is a keeper."""

    def __init__(self, client: RestClient, keeper: CredentialKeeper | None) -> None:
        self._client = client
        self._keeper = keeper

    @property
    def are_wanted(self) -> bool:
        return self._keeper is not None

    def note(self, found: TableAnswer) -> None:
        """Keep what came with a table. Errors: `AccessError` as of `read_credentials`."""
        if self._keeper is None:
            return
        identifier, metadata = found.table.identifier, found.table.metadata
        self._keeper.keep(
            identifier,
            table_folders(metadata),
            _read(identifier, found),
            partial(self._renewed, identifier, without_secrets(found.config)),
        )

    def forget(self, identifier: TableIdentifier) -> None:
        """Keep nothing for a name that is no table's any more."""
        if self._keeper is not None:
            self._keeper.keep(identifier, (), (), partial(self._renewed, identifier, {}))

    async def _renewed(
        self, identifier: TableIdentifier, config: Mapping[str, str]
    ) -> tuple[VendedCredential, ...]:
        """Ask for new credentials; for the table, where the server has no other place for them.

        `config`: what the table's load said beside.
        """
        path = self._client.paths.table(identifier)
        if self._client.paths.offers(CREDENTIALS):
            answer = await self._client.read(f"{path}/credentials")
            answer.require_success()
            if listed := _listed(answer):
                return read_credentials(identifier, config, listed)
        answer = await self._client.read(path)
        answer.require_success()
        return _read(identifier, await read_table_answer(answer, identifier))


def asking_for_credentials(options: RestOptions) -> RestOptions:
    """Return the options with the header that asks for vended credentials, unless they have one.

    Errors: `SettingsError` for one that asks for remote signing alone.
    """
    for name, text in options.headers.items():
        if name.lower() == DELEGATION_HEADER.lower():
            if "remote-signing" in text and VENDED not in text:
                raise SettingsError(
                    f"`header.{name}` {text}: requests that the catalog signs one by one are not"
                    f" supported; expected `{VENDED}`"
                )
            return options
    return replace(options, headers={**options.headers, DELEGATION_HEADER: VENDED})


def _read(identifier: TableIdentifier, found: TableAnswer) -> tuple[VendedCredential, ...]:
    return read_credentials(identifier, found.config, found.storage_credentials)


def _listed(answer: Answer) -> list[Mapping[str, Any]]:
    found = answer.json().get("storage-credentials")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
