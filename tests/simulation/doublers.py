"""Clients that would have rows twice: they claim other producers' files, and send again what has
landed. Raw bytes under keys of their own: no publisher of ours stands in their way.

Of what must not land, the history knows the reason; all else lands once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from uuid import UUID

from committer.errors import AlreadyExistsError, FrazilError
from committer.iceberg.entry.data_file import DataFile
from committer.plan.batch.data_locations import attempt_named
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.attempt import timed_nonce
from committer.request.commit_request import CommitRequest, Producer
from committer.request.request_format import EncodedRequest, line_digest, seal_request
from committer.request.table_identifier import TableIdentifier
from tests.simulation.chance import draws
from tests.simulation.ports import Ports
from tests.simulation.producers import ROWS, build_data_file, write_files
from tests.support.builders.request_builders import (
    build_line,
    build_manifest,
    seal,
    sealed_manifests,
)

# So many files are adopted again and again.
POOL = 6
# A request, and why it must not land, if it must not.
Sent = tuple[EncodedRequest, Reason | None]


class Claim(Enum):
    """How a request lays claim to a file that is another's."""

    ATTEMPT = "by the other's attempt in its own line and key"
    FILE = "by the other's path"
    BOTH = "by a new name that ends with the other's attempt, behind its own"
    TWINS = "as one of two requests that name one file by both attempts"


class Claimant:
    """Claims files that others have written, each time as a new producer."""

    def __init__(
        self, name: str, identifier: TableIdentifier, *, count: int, pause_s: float, seed: int
    ) -> None:
        self.name = name
        self.sent: list[Claim] = []
        self._identifier = identifier
        self._count = count
        self._pause_s = pause_s
        self._seed = seed
        self._begun = 0

    async def run(self, ports: Ports) -> None:
        while self._begun < self._count:
            await ports.world.sleep(self._pause_s * 2 * ports.world.jitter())
            self._begun += 1
            table = await ports.catalog.load(self._identifier)
            below = ports.storage.list(f"{table.metadata.location}/")
            paths = [one.location async for one in below if one.location.endswith(".parquet")]
            for request, reason in await self._claims(table, paths, ports):
                await send(ports, request, reason, is_rung=self._chance("rings") < 0.7)

    async def _claims(
        self, table: LoadedTable, paths: Sequence[str], ports: Ports
    ) -> Sequence[Sent]:
        others = [path for path in paths if attempt_named(path) and self.name not in path]
        claim = tuple(Claim)[int(self._chance("claim") * len(Claim))] if others else Claim.TWINS
        self.sent.append(claim)
        line = self._line(table, "", ports)
        if claim is Claim.TWINS:
            return await self._twins(table, line, ports)
        path = others[int(self._chance("path") * len(others))]
        attempt = UUID(attempt_named(path))
        own, files = self._file(table, line.attempt, ""), list[DataFile]()
        match claim:
            case Claim.ATTEMPT:
                false = line.model_copy(update={"attempt": attempt})
                return [(sealed(table, false, renamed(own, path)), Reason.ATTEMPT_MISMATCH)]
            case Claim.FILE:
                files = [own, renamed(own, path)]
            case Claim.BOTH:
                files = [self._file(table, attempt, f"-{line.attempt}")]
        return [(sealed(table, line, *files), Reason.PATH_WITHOUT_ATTEMPT)]

    async def _twins(
        self, table: LoadedTable, first: CommitRequest, ports: Ports
    ) -> Sequence[Sent]:
        """Send two requests for one file, whose path names the second: its attempt stands last."""
        second = self._line(table, "-twin", ports)
        file = self._file(table, second.attempt, f"-{first.attempt}")
        await write_files(ports, [file])
        twins: list[Sent] = [
            (sealed(table, first, file), Reason.PATH_WITHOUT_ATTEMPT),
            (sealed(table, second, file), None),
        ]
        return twins if self._chance("order") < 0.5 else twins[::-1]

    def _line(self, table: LoadedTable, suffix: str, ports: Ports) -> CommitRequest:
        return build_line(
            table, producer=f"{self.name}-{self._begun}{suffix}", nonce=ports.world.uuid()
        )

    def _file(self, table: LoadedTable, attempt: UUID, before: str) -> DataFile:
        name = f"{self.name}-{self._begun}{before}"
        return build_data_file(table.metadata, attempt, name, rows=ROWS)

    def _chance(self, what: str) -> float:
        return draws(self._seed, f"{self.name} {what} {self._begun}")[0]


class Again(Enum):
    """How a one-shot request comes once more."""

    SAME = "byte for byte"
    LASTING = "without the promise to come once"
    NEXT = "as another epoch, with files of its own"


class Repeater:
    """One-shot producers, some of whose requests come once more: while the ledger knows them, while
    a tombstone does, and behind the horizon. Some have taken long from nonce to request.
    """

    def __init__(
        self, name: str, identifier: TableIdentifier, *, count: int, pause_s: float, seed: int
    ) -> None:
        self.name = name
        self._identifier = identifier
        self._count = count
        self._pause_s = pause_s
        self._seed = seed
        self.again: list[Again] = []
        self._begun = 0
        self._sent: list[EncodedRequest] = []

    async def run(self, ports: Ports) -> None:
        while self._begun < self._count:
            await ports.world.sleep(self._pause_s * 2 * ports.world.jitter())
            self._begun += 1
            table = await ports.catalog.load(self._identifier)
            if self._sent and self._chance("again") < 0.5:
                before = self._sent[int(self._chance("which") * len(self._sent))]
                again = tuple(Again)[int(self._chance("how") * len(Again))]
                await self._send_again(table, before, again, ports)
            else:
                await self._send(table, ports)

    async def _send(self, table: LoadedTable, ports: Ports) -> None:
        is_slow, age = self._chance("is slow") < 0.2, self._chance("age")
        made_ms = ports.world.now_ms() - int(age * 20_000 if is_slow else 0)
        nonce = timed_nonce(made_ms, ports.world.uuid())
        line = self._line(table, f"{self.name}-{self._begun}", nonce)
        self._sent.append(await self._with_file(table, line, ports))
        await self._ring(self._sent[-1], ports)

    async def _send_again(
        self, table: LoadedTable, before: EncodedRequest, again: Again, ports: Ports
    ) -> None:
        line = before.request
        self.again.append(again)
        match again:
            case Again.SAME:
                await self._ring(before, ports)
            case Again.LASTING:
                lasting = line.model_copy(update={"producer": Producer(id=line.producer.id)})
                await self._ring(seal_request(lasting, sealed_manifests(before)), ports)
            case Again.NEXT:
                following = self._line(table, line.producer.id, line.nonce, epoch=self._begun)
                await self._ring(await self._with_file(table, following, ports), ports)

    def _line(
        self, table: LoadedTable, producer: str, nonce: UUID, *, epoch: int = 0
    ) -> CommitRequest:
        return build_line(table, producer=producer, one_shot=True, nonce=nonce, epoch=epoch)

    async def _with_file(
        self, table: LoadedTable, line: CommitRequest, ports: Ports
    ) -> EncodedRequest:
        file = build_data_file(table.metadata, line.attempt, "00000", rows=ROWS)
        await write_files(ports, [file])
        return sealed(table, line, file)

    async def _ring(self, one: EncodedRequest, ports: Ports) -> None:
        await send(ports, one, None, is_rung=self._chance("rings") < 0.7)

    def _chance(self, what: str) -> float:
        return draws(self._seed, f"{self.name} {what} {self._begun}")[0]


class Adopter:
    """Adopts files of a small pool, whose names hold no attempt: the same ones again and again,
    each time as a new producer. Each is live once at most, whoever comes first.
    """

    def __init__(
        self, name: str, identifier: TableIdentifier, *, count: int, pause_s: float, seed: int
    ) -> None:
        self.name = name
        self._identifier = identifier
        self._count = count
        self._pause_s = pause_s
        self._seed = seed
        self._begun = 0

    async def run(self, ports: Ports) -> None:
        while self._begun < self._count:
            await ports.world.sleep(self._pause_s * 2 * ports.world.jitter())
            self._begun += 1
            table = await ports.catalog.load(self._identifier)
            first, size = int(self._chance("first") * POOL), 1 + int(self._chance("size") * 2)
            files = [self._file(table, (first + each) % POOL) for each in range(size)]
            for file in files:
                with suppress(AlreadyExistsError):
                    await write_files(ports, [file])
            line = build_line(
                table,
                producer=f"{self.name}-{self._begun}",
                nonce=timed_nonce(ports.world.now_ms(), ports.world.uuid()),
                one_shot=True,
            )
            adopting = line.model_copy(update={"adopt_existing": True})
            # Two requests at once are often of one batch.
            is_rung = self._chance("rings") < 0.7
            await send(ports, sealed(table, adopting, *files), None, is_rung=is_rung)

    def _file(self, table: LoadedTable, number: int) -> DataFile:
        file = build_data_file(table.metadata, UUID(int=0), "pool", rows=ROWS)
        folder = file.file_path.rpartition("/")[0]
        path = f"{folder}/pool-{number}.parquet"
        return replace(file, file_path=path, file_size_in_bytes=len(path))

    def _chance(self, what: str) -> float:
        return draws(self._seed, f"{self.name} {what} {self._begun}")[0]


def sealed(table: LoadedTable, line: CommitRequest, *files: DataFile) -> EncodedRequest:
    """Encode a request that lists these files, even those of another producer."""
    bare = line.model_copy(update={"manifests": ()})
    return seal(bare, [build_manifest(table.metadata, files)])


def renamed(file: DataFile, path: str) -> DataFile:
    """Return the file at another path."""
    return replace(file, file_path=path)


async def send(ports: Ports, one: EncodedRequest, reason: Reason | None, *, is_rung: bool) -> None:
    """Write a request into the inbox, and ring, best effort. A client rings only for a request that
    is known to be durable.
    """
    request = one.request
    if reason is not None:
        ports.history.claims[request.inbox_key] = reason.value
    key = request.inbox_key
    try:
        await ports.storage.create((NewObject(ports.inbox.location(key), one.content),))
    except AlreadyExistsError:
        pass
    except FrazilError:
        return
    if is_rung:
        bell = Doorbell(request.table_uuid, key, line_digest(one.content), one.content, None)
        with suppress(FrazilError):
            await ports.queue.announce([bell])
