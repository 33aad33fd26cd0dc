"""Where large requests are read and checked: here, or in worker processes, in fair turns.

Reading a long line and walking entries is pure Python: a thread would hold the interpreter, and
with it the loop. So what is large goes to another process, producer by producer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import Protocol

from committer.errors import InvalidRequestError, InvariantError
from committer.iceberg.splice.manifest_splice import ManifestPart
from committer.plan.fair_queue import FairQueue
from committer.plan.request_check import CheckedRequest, Checker, Inflates, NeedsManifests, within
from committer.plan.submitted_manifest import CheckedManifest
from committer.reason import Reason
from committer.request.request_format import (
    EncodedRequest,
    check_hashes,
    parse_request,
    read_request,
)
from committer.service.checks.check_process import (
    CheckProcess,
    JobLostError,
    ProcessEndedError,
)
from committer.service.checks.check_worker import (
    CPU_S_MAX,
    MEMORY_BYTES_MAX,
    Answer,
    CheckAnswer,
    CheckJob,
    Crashed,
    Job,
    ReadAnswer,
    ReadJob,
    Refused,
    TooMuchMemory,
    pickled_basis,
    without_files,
)
from committer.service.telemetry.log import log

Named = Mapping[str, bytes]
# Parsing such a line takes a few milliseconds. A worker process reads longer ones.
LINE_HERE_BYTES_MAX = 64 * 1024
_TRIES_MAX = 3
_MIB = 1024 * 1024


class Checks(Protocol):
    """Reads and checks large requests. Errors: `InvalidRequestError`, also of `TRIES_MAX`."""

    async def read(self, content: bytes, key: str, producer: str) -> EncodedRequest:
        """Read a request as `read_request`. It may lack data that only its check needs.
        The request may lack what only its check needs."""

    async def check(
        self,
        checker: Checker,
        sealed: EncodedRequest,
        producer: str,
        read: Named | None,
        inflated_bytes_max: int,
    ) -> CheckedRequest | NeedsManifests | Inflates:
        """Check, as `Checker.check`, a request that `read` has returned or that is whole. Return
        `Inflates` if more would be kept inflated than `inflated_bytes_max`.
        """

    async def close(self) -> None:
        """End what runs; nothing is answered any more."""


class ChecksHere:
    """For one that has no processes: in the loop, at once."""

    async def read(self, content: bytes, key: str, producer: str) -> EncodedRequest:
        return read_request(content, key=key)

    async def check(
        self,
        checker: Checker,
        sealed: EncodedRequest,
        producer: str,
        read: Named | None,
        inflated_bytes_max: int,
    ) -> CheckedRequest | NeedsManifests | Inflates:
        checked = checker.check(sealed, read)
        return within(checked, inflated_bytes_max)

    async def close(self) -> None:
        return


class ChecksInProcesses:
    """In worker processes, as many as are worth it, started on demand."""

    def __init__(self, processes: Sequence[CheckProcess]) -> None:
        # Each has a second job waiting, so that it never idles between two.
        self._free = deque((*processes, *processes))
        self._all = tuple(processes)
        self._turns = FairQueue[asyncio.Future[CheckProcess]]()
        # Of the checker that was used last: pickling it takes some hundred microseconds.
        self._basis: tuple[Checker, bytes] | None = None

    async def read(self, content: bytes, key: str, producer: str) -> EncodedRequest:
        if content.find(b"\n", 0, LINE_HERE_BYTES_MAX) >= 0:
            sealed = parse_request(content, key=key)
            # Hashing does not hold the interpreter.
            await asyncio.to_thread(check_hashes, sealed)
            return replace(sealed, request=without_files(sealed.request), is_whole=False)
        answer = await self._answer(ReadJob(key), (content,), producer)
        if not isinstance(answer, ReadAnswer):
            raise InvariantError(f"a worker process read a request, and said {answer!r}")
        return EncodedRequest(answer.request, content, answer.body, is_whole=False, object_key=key)

    async def check(
        self,
        checker: Checker,
        sealed: EncodedRequest,
        producer: str,
        read: Named | None,
        inflated_bytes_max: int,
    ) -> CheckedRequest | NeedsManifests | Inflates:
        paths = None if read is None else tuple(read)
        named = () if read is None else tuple(read.values())
        buffers = (sealed.content, self._pickled_basis(checker), *named)
        answer = await self._answer(CheckJob(paths, inflated_bytes_max), buffers, producer)
        if isinstance(answer, NeedsManifests | Inflates):
            return answer
        if not isinstance(answer, CheckAnswer):
            raise InvariantError(f"a worker process checked a request, and said {answer!r}")
        return CheckedRequest(sealed, checker.basis, tuple(_manifests(answer, sealed, read or {})))

    def _pickled_basis(self, checker: Checker) -> bytes:
        if self._basis is None or self._basis[0] is not checker:
            self._basis = checker, pickled_basis(checker)
        return self._basis[1]

    async def close(self) -> None:
        for process in self._all:
            await process.close()

    async def _answer(self, job: Job, buffers: Sequence[bytes], producer: str) -> Answer:
        """Have a process do the job.
        Errors: `InvalidRequestError` for a refused request, or one that no process survives."""
        ended = list[ProcessEndedError]()
        while len(ended) < _TRIES_MAX:
            async with self._turn(producer, sum(map(len, buffers))) as process:
                try:
                    answer = await process.ask(job, buffers)
                except JobLostError:
                    continue
                except ProcessEndedError as error:
                    ended.append(error)
                    if error.is_out_of_time:
                        raise _out_of_time() from error
                else:
                    return _accepted(answer)
        raise InvalidRequestError(
            Reason.PLAN_FAILED,
            f"the process that checked it ended each time that it was tried ({ended[-1]})",
        ) from ended[-1]

    @asynccontextmanager
    async def _turn(self, producer: str, cost: int) -> AsyncIterator[CheckProcess]:
        process = await self._take(producer, cost)
        try:
            yield process
        finally:
            self._hand_on(process)

    async def _take(self, producer: str, cost: int) -> CheckProcess:
        if self._free:
            # One that is idle, if there is one.
            process = max(self._free, key=self._free.count)
            self._free.remove(process)
            return process
        turn: asyncio.Future[CheckProcess] = asyncio.get_running_loop().create_future()
        self._turns.add(producer, cost, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._hand_on(turn.result())
            raise

    def _hand_on(self, process: CheckProcess) -> None:
        while len(self._turns):
            turn = self._turns.take()
            if not turn.done():
                turn.set_result(process)
                return
        self._free.append(process)


def _accepted(answer: Answer) -> Answer:
    match answer:
        case Refused(reason, message):
            raise InvalidRequestError(Reason(reason), message)
        case TooMuchMemory():
            raise InvalidRequestError(
                Reason.REQUEST_TOO_LARGE,
                f"reading it takes more than {MEMORY_BYTES_MAX // _MIB} MiB of memory: publish its"
                " files in several requests",
            )
        case Crashed(problem):
            log.error("check.crashed", error=problem)
            raise InvalidRequestError(Reason.PLAN_FAILED, f"the check itself failed: {problem}")
        case _:
            return answer


def _out_of_time() -> InvalidRequestError:
    return InvalidRequestError(
        Reason.REQUEST_TOO_LARGE,
        f"its check takes more than {CPU_S_MAX} s of processor time: publish its files in several"
        " requests",
    )


def _manifests(
    answer: CheckAnswer, sealed: EncodedRequest, read: Named
) -> Iterator[CheckedManifest]:
    """Yield the manifests: those that the request refers to, and those made of its files."""
    for part, reference in zip_longest(answer.parts, sealed.request.manifests):
        content: bytes | memoryview
        if reference is None:
            content = part.content or b""
        elif reference.path is None:
            content = sealed.manifest(reference)
        else:
            content = read[reference.path]
        yield CheckedManifest(part.spec_id, ManifestPart(content, part.walked))
