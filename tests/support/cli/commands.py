"""Runs `frazil` in this process, in a home of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from committer.__main__ import main
from committer.plan.cleanup.orphan_search import data_files_of
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject, create_or_equal
from committer.request.request_format import EncodedRequest
from committer.request.table_identifier import TableIdentifier
from committer.service.process.composition import Parts, open_parts
from committer.settings.service_settings import load_settings
from committer.storage.inbox.inbox import QuarantineRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON lines on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def object(self) -> dict[str, Any]:
        (found,) = self.lines
        return found


class Frazil:
    """The command with the settings of one test. No queue, unless they say otherwise."""

    def __init__(
        self,
        home: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._capsys = capsys
        chosen = {"FRAZIL_HOME": str(home), "FRAZIL_QUEUE__URL": "none", **(settings or {})}
        for name, value in chosen.items():
            monkeypatch.setenv(name, value)

    def __call__(self, *arguments: str) -> Answer:
        self._capsys.readouterr()
        code = main(arguments)
        captured = self._capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    def with_parts(self, work: Callable[[Parts], Awaitable[T]]) -> T:
        """Run the work as another process would beside the command."""

        async def run() -> T:
            parts = await open_parts(load_settings())
            try:
                return await work(parts)
            finally:
                await parts.close()

        return asyncio.run(run())

    def load(self, name: str = "db.flights") -> LoadedTable:
        return self.with_parts(lambda parts: parts.catalog.load(TableIdentifier.parse(name)))

    def put(self, *requests: EncodedRequest) -> None:
        async def work(parts: Parts) -> None:
            for sealed in requests:
                await parts.inbox.put(sealed)

        self.with_parts(work)

    def quarantine(
        self,
        sealed: EncodedRequest,
        reason: str,
        message: str = "for a test",
        *,
        quarantined_at_ms: int = 1_800_000_000_000,
        has_files: bool = True,
        is_told_only: bool = False,
    ) -> str:
        """Quarantine a request as the committer does; return its key."""
        if has_files:
            self.write_files(sealed)
        request = sealed.request
        record = QuarantineRecord(
            key=sealed.key,
            reason=reason,
            message=message,
            quarantined_at_ms=quarantined_at_ms,
            table=str(request.identifier),
            is_told_only=is_told_only,
        )
        content = b"" if is_told_only else sealed.content
        self.with_parts(lambda parts: parts.quarantine.put(record, content))
        return sealed.key

    def write_files(self, sealed: EncodedRequest) -> None:
        """Write a few bytes under the name of each data file that a request adds."""

        async def work(parts: Parts) -> None:
            for path in data_files_of(sealed, ()):
                await create_or_equal(parts.storage, NewObject(path, b"rows"))

        self.with_parts(work)

    def outstanding(self) -> list[str]:
        async def work(parts: Parts) -> list[str]:
            return [found.key async for found in parts.inbox.list()]

        return self.with_parts(work)

    def quarantined(self) -> list[str]:
        async def work(parts: Parts) -> list[str]:
            return [found.key async for found in parts.quarantine.list()]

        return self.with_parts(work)
