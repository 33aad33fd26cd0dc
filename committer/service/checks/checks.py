"""Reads and checks large requests, in this process or in workers, in fair turns.

Reading a long line and walking entries is pure Python: a thread would hold the interpreter, and
with it the loop. So what is large goes to another process, producer by producer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest

from committer.errors import InvalidRequestError, InvariantError
from committer.iceberg.splice.manifest_splice import ManifestPart
from committer.iceberg.splice.work_left import TooMuchWorkError, WorkLeft
from committer.plan.batch.request_check import (
    CheckedRequest,
    Checker,
    Inflates,
    NeedsManifests,
    within,
)
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.reason import Reason
from committer.request.request_format import (
    EncodedRequest,
    check_hashes,
    parse_request,
)
from committer.service.checks.check_process import (
    CheckProcess,
    JobLostError,
    Limit,
    NotStartedError,
    ProcessEndedError,
)
from committer.service.checks.check_worker import (
    Answer,
    CheckAnswer,
    CheckJob,
    Crashed,
    Job,
    JobLimits,
    ReadAnswer,
    ReadJob,
    Refused,
    has_files,
    pickled_basis,
    without_files,
)
from committer.service.checks.process_reports import ProcessReports
from committer.service.checks.turns import Turns
from committer.service.telemetry.log import log

Named = Mapping[str, bytes]
# Parsing such a line takes a few milliseconds. A worker process reads longer ones.
LINE_HERE_BYTES_MAX = 64 * 1024
# A request of so many bytes is checked in the loop, in less time than its exchange with a worker
# process takes: 1,000 entries in 7 ms. Hashing it takes 0.3 ms.
REQUEST_HERE_BYTES_MAX = 256 * 1024
_MIB = 1024 * 1024


def work_here() -> WorkLeft:
    """Return the work that the loop can wait for: some 15 ms, 50 at the very worst."""
    return WorkLeft(entries=2_000, inflated_bytes=_MIB, decoded_bytes=128 * 1024)


class Checks:
    """Reads and checks large requests in worker processes, as many as are worth it, started on
    demand. Requests that take no more than `work_here` are checked in the loop, one between two of
    its other steps. `apart`: the process for requests that have ended one of the others: so each
    of them costs its neighbors one process once. Errors: `InvalidRequestError`, also for a request
    that has ended both.
    """

    def __init__(
        self,
        processes: Sequence[CheckProcess],
        apart: CheckProcess,
        reports: ProcessReports,
        here_bytes_max: int = REQUEST_HERE_BYTES_MAX,
    ) -> None:
        # Each has a second job waiting, so that it never idles between two.
        self._processes = Turns((*processes, *processes))
        # No second one: its job is alone there.
        self._apart = Turns((apart,))
        self._apart_process = apart
        self._reports = reports
        self._here = Turns((None,))
        self._here_bytes_max = here_bytes_max
        self._all = (*processes, apart)
        # Of the checker that was used last: pickling it takes some hundred microseconds.
        self._basis: tuple[Checker, bytes] | None = None

    async def read(self, content: bytes, key: str, producer: str) -> EncodedRequest:
        """Read a request as `read_request`. It may lack data that only its check needs."""
        if content.find(b"\n", 0, LINE_HERE_BYTES_MAX) >= 0:
            sealed = parse_request(content, key=key)
            if len(content) <= self._here_bytes_max:
                check_hashes(sealed)
            else:
                # Hashing does not hold the interpreter.
                await asyncio.to_thread(check_hashes, sealed)
            if not has_files(sealed.request):
                return sealed
            return replace(sealed, request=without_files(sealed.request), is_whole=False)
        answer = await self._answer(key, ReadJob(key), (content,), producer)
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
        """Check, as `Checker.check`, a request that `read` has returned or that is whole. Return
        `Inflates` if more would be kept inflated than `inflated_bytes_max`.
        """
        if sealed.is_whole and not read and len(sealed.content) <= self._here_bytes_max:
            with suppress(TooMuchWorkError):
                return await self._check_here(checker, sealed, producer, inflated_bytes_max)
        paths = None if read is None else tuple(read)
        named = () if read is None else tuple(read.values())
        buffers = (sealed.content, self._pickled_basis(checker), *named)
        job = CheckJob(paths, inflated_bytes_max)
        answer = await self._answer(sealed.key, job, buffers, producer)
        if isinstance(answer, NeedsManifests | Inflates):
            return answer
        if not isinstance(answer, CheckAnswer):
            raise InvariantError(f"a worker process checked a request, and said {answer!r}")
        manifests = tuple(_manifests(answer, sealed, read or {}))
        return CheckedRequest(sealed, checker.basis, manifests, answer.filters)

    async def _check_here(
        self, checker: Checker, sealed: EncodedRequest, producer: str, inflated_bytes_max: int
    ) -> CheckedRequest | NeedsManifests | Inflates:
        async with self._here.turn(producer, len(sealed.content)):
            try:
                return within(checker.check(sealed, left=work_here()), inflated_bytes_max)
            finally:
                # The next one is not checked before the loop has looked after all others.
                await asyncio.sleep(0)

    def _pickled_basis(self, checker: Checker) -> bytes:
        if self._basis is None or self._basis[0] is not checker:
            self._basis = checker, pickled_basis(checker)
        return self._basis[1]

    async def close(self) -> None:
        """End what runs; nothing is answered any more."""
        for process in self._all:
            await process.close()

    async def _answer(self, key: str, job: Job, buffers: Sequence[bytes], producer: str) -> Answer:
        """Have a process do the job of the request with this inbox key. Errors:
        `InvalidRequestError` for a refused request, or one that no process survives.
        """
        try:
            return await self._ask(self._processes, key, job, buffers, producer)
        except ProcessEndedError as error:
            if error.limit is Limit.PROCESSOR_TIME:
                # Others take none of it.
                raise self._no_answer(error) from error
        try:
            return await self._ask(self._apart, key, job, buffers, producer)
        except ProcessEndedError as error:
            raise self._no_answer(error) from error
        finally:
            # Mostly nothing needs it.
            await self._apart_process.end()

    async def _ask(
        self,
        processes: Turns[CheckProcess],
        key: str,
        job: Job,
        buffers: Sequence[bytes],
        producer: str,
    ) -> Answer:
        """Ask until a process has begun with the job. Errors: `ProcessEndedError`, and those of
        `_accepted`."""
        while True:
            try:
                async with processes.turn(producer, sum(map(len, buffers))) as process:
                    answer = await process.ask(job, buffers)
            except JobLostError:
                continue
            except NotStartedError as error:
                await self._reports.not_started(error)
            except ProcessEndedError as error:
                self._reports.ended(error, key, is_apart=processes is self._apart)
                raise
            else:
                self._reports.answered()
                return _accepted(answer)

    def _no_answer(self, error: ProcessEndedError) -> InvalidRequestError:
        limits = self._apart_process.limits
        if error.limit is None:
            return InvalidRequestError(
                Reason.PLAN_FAILED,
                f"each process that checked it ended, the last one with {error}",
            )
        return InvalidRequestError(
            Reason.REQUEST_TOO_LARGE,
            f"its check takes more than {_text_of(error.limit, limits)}: publish its files in"
            " several requests",
        )


def _text_of(limit: Limit, limits: JobLimits) -> str:
    match limit:
        case Limit.WALL_CLOCK:
            return f"{limits.wall_clock_s:g} s of time"
        case Limit.PROCESSOR_TIME:
            return f"{limits.processor_s} s of processor time"
        case Limit.MEMORY:
            return f"{limits.memory_bytes // _MIB} MiB of memory"


def _accepted(answer: Answer) -> Answer:
    match answer:
        case Refused(reason, message):
            raise InvalidRequestError(Reason(reason), message)
        case Crashed(problem):
            log.error("check.crashed", error=problem)
            raise InvalidRequestError(Reason.PLAN_FAILED, f"the check itself failed: {problem}")
        case _:
            return answer


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
