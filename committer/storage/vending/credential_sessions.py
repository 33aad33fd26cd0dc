"""Open storages by the properties that they were opened with: one session a set of credentials.

Bounded: the one that was used longest ago is closed. A session in use is never closed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from committer.group_commit import finish_all
from committer.ports.storage import Storage

_Key = frozenset[tuple[str, str]]


@dataclass(slots=True)
class _Session:
    storage: Storage
    users: int = 0


class CredentialSessions:
    """At most `open_max` idle storages."""

    def __init__(self, open_with: Callable[[Mapping[str, str]], Storage], open_max: int) -> None:
        self._open_with = open_with
        self._open_max = open_max
        self._sessions: dict[_Key, _Session] = {}
        self._retired: list[_Session] = []

    @asynccontextmanager
    async def use(self, properties: Mapping[str, str]) -> AsyncIterator[Storage]:
        """Lend the storage of these properties for as long as the block runs."""
        key = frozenset(properties.items())
        session = self._sessions.pop(key, None) or _Session(self._open_with(properties))
        self._sessions[key] = session  # the last is the one that was used last
        session.users += 1
        try:
            yield session.storage
        finally:
            session.users -= 1
            await self._close_idle()

    def retire(self, properties: Mapping[str, str]) -> None:
        """Close the session of these properties once it is idle; they are good for nothing more."""
        session = self._sessions.pop(frozenset(properties.items()), None)
        if session is not None:
            self._retired.append(session)

    async def close(self) -> None:
        sessions = [*self._sessions.values(), *self._retired]
        self._sessions, self._retired = {}, []
        await finish_all(session.storage.close() for session in sessions)

    async def _close_idle(self) -> None:
        idle = [session for session in self._retired if not session.users]
        self._retired = [session for session in self._retired if session.users]
        surplus = len(self._sessions) - self._open_max
        for key, session in list(self._sessions.items()):
            if surplus <= 0:
                break
            if not session.users:
                idle.append(self._sessions.pop(key))
                surplus -= 1
        if idle:
            await finish_all(session.storage.close() for session in idle)
