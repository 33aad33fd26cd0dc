"""The process that reads and checks large requests: frames of pickled jobs in, answers out.

It knows no storage and no loop. A job that takes too much time or memory ends the process, most
often by its parent, which turns that into a verdict. The answer is no larger than the request.
"""

from __future__ import annotations

import copyreg
import ctypes
import os
import pickle
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, cast

from committer.errors import InvalidRequestError
from committer.iceberg.splice.manifest_walk import WalkedManifest
from committer.plan.batch.checked_filters import CheckedFilters
from committer.plan.batch.request_check import (
    CheckedRequest,
    Checker,
    Inflates,
    NeedsManifests,
    within,
)
from committer.request.commit_request import CommitRequest
from committer.request.request_format import parse_request, read_request

_SIZE_BYTES = 8
# The process's own limit of memory, as a multiple of a job's: its parent ends it before.
_LAST_RESORT = 4
_CHECKERS_MAX = 4


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


def _reduced(mapping: MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    return _read_only, (dict(mapping),)


copyreg.pickle(MappingProxyType, _reduced)


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The most that one job may take. `wall_clock_s`: since the process could begin with it.
    `memory_bytes`: beyond what the process has once its modules are loaded.

    The largest valid requests take some 5 s of processor time: 300,000 entries in 64 MiB.
    """

    wall_clock_s: float = 60.0
    processor_s: int = 30
    memory_bytes: int = 192 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ready:
    """The process has loaded its modules."""


@dataclass(frozen=True, slots=True)
class ReadJob:
    """Read the request; it must be of this inbox key. One buffer: its content."""

    key: str


@dataclass(frozen=True, slots=True)
class CheckJob:
    """Check a request that was read: its hashes are right. Buffers: its content, the pickled basis,
    and the contents of the manifests that it names by `paths`, None before these were read.
    """

    paths: tuple[str, ...] | None
    inflated_bytes_max: int


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """The request without what only its check needs, and where its manifests begin."""

    request: Any
    body: int


@dataclass(frozen=True, slots=True)
class WalkedPart:
    """A manifest that was found good. `content`: of one that was encoded from inline files."""

    spec_id: int
    walked: WalkedManifest
    content: bytes | None


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """The manifests of a request that may land: those it refers to, then those of its files; and
    its filters."""

    parts: tuple[WalkedPart, ...]
    filters: CheckedFilters


@dataclass(frozen=True, slots=True)
class Refused:
    """The request cannot land."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class TooMuchMemory:
    """The process has met its own limit."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """A bug of ours: `problem` is what it raised."""

    problem: str


Job = ReadJob | CheckJob
Answer = ReadAnswer | CheckAnswer | NeedsManifests | Inflates | Refused | TooMuchMemory | Crashed


# --- Frames --------------------------------------------------------------------------------------


def send(stream: BinaryIO, message: object, buffers: Sequence[bytes | memoryview] = ()) -> None:
    """Write a message and its buffers, which are not copied. Errors: `OSError`."""
    head = pickle.dumps((message, tuple(map(len, buffers))), pickle.HIGHEST_PROTOCOL)
    for part in (len(head).to_bytes(_SIZE_BYTES, "big"), head, *buffers):
        rest = memoryview(part)
        while rest:
            rest = rest[stream.write(rest) :]


def receive(stream: BinaryIO) -> tuple[Any, list[bytearray]]:
    """Read a message and its buffers. Errors: `EOFError` where the other side has ended."""
    size = int.from_bytes(_read(stream, _SIZE_BYTES), "big")
    message, sizes = pickle.loads(_read(stream, size))  # noqa: S301  # of our own process
    return message, [_read(stream, each) for each in sizes]


def _read(stream: BinaryIO, size: int) -> bytearray:
    content = bytearray(size)
    rest = memoryview(content)
    while rest:
        count = cast("Any", stream).readinto(rest)
        if not count:
            raise EOFError
        rest = rest[count:]
    return content


# --- Jobs ----------------------------------------------------------------------------------------


class Worker:
    """Does jobs one after another; remembers the last few bases."""

    def __init__(self) -> None:
        self._checkers: dict[bytes, Checker] = {}

    def do(self, job: Job, buffers: Sequence[bytearray]) -> Answer:
        """Answer a job. Every request gets an answer, a malformed one too."""
        try:
            match job:
                case ReadJob(key):
                    sealed = read_request(_bytes(buffers[0]), key=key)
                    return ReadAnswer(without_files(sealed.request), sealed.body)
                case CheckJob():
                    return self._check(job, buffers)
        except InvalidRequestError as error:
            return Refused(error.reason, str(error))
        except MemoryError:
            return TooMuchMemory()
        except Exception as error:  # noqa: BLE001  # the parent logs it
            return Crashed(repr(error)[:1_000])

    def _check(self, job: CheckJob, buffers: Sequence[bytearray]) -> Answer:
        content, basis, *named = buffers
        read = None if job.paths is None else dict(zip(job.paths, map(_bytes, named), strict=True))
        checked = self._checker(bytes(basis)).check(parse_request(_bytes(content)), read)
        found = within(checked, job.inflated_bytes_max)
        return _parts(found) if isinstance(found, CheckedRequest) else found

    def _checker(self, basis: bytes) -> Checker:
        known = self._checkers.pop(basis, None) or Checker(*pickle.loads(basis))  # noqa: S301
        self._checkers[basis] = known
        while len(self._checkers) > _CHECKERS_MAX:
            del self._checkers[next(iter(self._checkers))]
        return known


def pickled_basis(checker: Checker) -> bytes:
    """Return the pickled basis, from which a worker builds an equal checker."""
    return pickle.dumps((checker.basis, checker.current_schema), pickle.HIGHEST_PROTOCOL)


def _bytes(buffer: bytearray) -> bytes:
    """Return the buffer as bytes without a copy: nothing here changes it."""
    return cast("bytes", buffer)


def has_files(request: CommitRequest) -> bool:
    """Return whether `without_files` drops anything."""
    needs = request.needs
    has_filter = needs.row_filter is not None or needs.conflict_filter is not None
    return bool(request.files) or has_filter


def without_files(request: CommitRequest) -> CommitRequest:
    """Drop inline files and filters: they may be millions of objects, and only the check reads
    them."""
    needs = request.needs.model_copy(update={"conflict_filter": None, "row_filter": None})
    return request.model_copy(update={"files": (), "needs": needs})


def _parts(checked: CheckedRequest) -> CheckAnswer:
    count = len(checked.request.manifests)
    return CheckAnswer(
        tuple(
            WalkedPart(
                manifest.spec_id,
                replace(manifest.walked, paths=[]),
                bytes(manifest.part.content) if number >= count else None,
            )
            for number, manifest in enumerate(checked.manifests)
        ),
        checked.filters,
    )


def main(limits: JobLimits) -> None:
    """Answer until there are no more jobs."""
    # The parent ends this process; Ctrl-C and systemd's stop signal reach the whole group.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    jobs, answers = os.fdopen(0, "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    _limit_memory(_LAST_RESORT * limits.memory_bytes)
    worker = Worker()
    with suppress(EOFError, BrokenPipeError):
        send(cast("BinaryIO", answers), Ready())
        while True:
            job, buffers = receive(cast("BinaryIO", jobs))
            _limit_time(limits.processor_s)
            answer = worker.do(job, buffers)
            del job, buffers
            send(cast("BinaryIO", answers), answer)
            del answer
            _give_back()


def _limit_memory(size_bytes: int) -> None:
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        limit = pages * resource.getpagesize() + size_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _limit_time(processor_s: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    limit = int(used.ru_utime + used.ru_stime) + processor_s
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def _give_back() -> None:
    """Return free memory to the system, where the C library can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
