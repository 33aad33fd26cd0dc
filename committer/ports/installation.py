"""The port `Identity`: which installation the users of an inbox belong to. Each docstring is a
contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Installation:
    """The location of an inbox and the name of a catalog, which its committers have in common."""

    inbox: str
    catalog: str

    def __str__(self) -> str:
        return f"inbox `{self.inbox}`, catalog `{self.catalog}`"


class Identity(Protocol):
    """The identity of one inbox: 32 hexadecimal digits that are made once.

    It is kept in the inbox: equal for everyone who uses that inbox, however each spells its
    location, and different for two inboxes whose locations are spelled alike (one path on two
    machines). A copy of an inbox has the identity of the original.

    Errors of both methods: those of the storage; `SettingsError` for what is no identity.
    """

    @property
    def location(self) -> str:
        """Where it is kept."""

    async def find(self) -> str | None:
        """Return the identity; None where there is none yet. Nothing is made."""

    async def ensure(self) -> str:
        """Return the identity; make it where there is none."""
