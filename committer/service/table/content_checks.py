"""Checks the content of requests that may land, and remembers against which basis."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from committer.errors import FrazilError, InvalidRequestError
from committer.group_commit import finish_in_turns
from committer.iceberg.metadata.property_values import is_true
from committer.iceberg.splice.work_left import TooMuchWorkError, WorkLeft
from committer.plan.batch.data_locations import PATH_SHOWN_MAX
from committer.plan.batch.request_check import (
    CheckedRequest,
    Checker,
    Inflates,
    NeedsManifests,
    added_paths,
    within,
)
from committer.reason import Reason
from committer.request.unsigned_operations import CHECK_FILES_PROPERTY
from committer.service.checks.large_checks import LargeChecks, read_named
from committer.service.requests.large_requests import LARGE_BYTES_MIN
from committer.service.requests.pending import Check, Pending, Refusal, Waiting
from committer.service.table.admission_outcome import AdmissionOutcome, QuarantineVerdict
from committer.service.tasks.file_lookup import first_absent
from committer.service.tasks.steps import OFF_LOOP_BYTES
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics

# Such a check may take 50 ms, where each entry has to be decoded.
ENTRIES_MAX = 500
_INFLATED_BYTES_MAX = 1024 * 1024
_DECODED_BYTES_MAX = 256 * 1024
# All checks of a round that the loop waits for take no longer than the first of these that is used
# up: some 10 ms. A thread does the others.
_LOOP_ENTRIES_MAX = 2_000
_LOOP_INFLATED_BYTES_MAX = 1024 * 1024
_LOOP_DECODED_BYTES_MAX = 64 * 1024
# Manifests that a request names by path, each a read.
NAMED_MAX = 4
# Requests whose files are looked up at once, and files of each.
_LOOKED_UP_MAX = 8
_LOOKS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class _Costly:
    """Its check may take longer than the loop can wait, whatever its size."""


_First = CheckedRequest | NeedsManifests | Inflates | _Costly | Refusal


@dataclass(eq=False)
class ContentChecks:
    """Checks the content of one table's requests. Those that take long go to `large`, and come back
    with a later round. `looks_for_files`: whether the files of requests that prove no origin have
    to exist, where the table's property does not say.
    """

    waiting: Waiting
    large: LargeChecks
    metrics: Metrics
    looks_for_files: bool = False

    async def check_all(
        self,
        landing: Sequence[Pending],
        checker: Checker,
        outcome: AdmissionOutcome,
        properties: Mapping[str, str],
    ) -> None:
        """Add each to the candidates, the suspects, the refused or the failed. `properties`: of the
        table.
        """
        unchecked = []
        for pending in landing:
            if pending.check is not None and pending.check.basis is checker.basis:
                self._note(pending, pending.check, outcome)
            elif pending.is_large or not pending.sealed.is_whole:
                self._start_large(pending, checker)
            else:
                unchecked.append(pending)
        results = await _check_each(checker, unchecked)
        for pending, first in zip(unchecked, results, strict=True):
            result: _First | FrazilError = first
            if isinstance(first, NeedsManifests) and not _needs_much(first):
                result = await self._check_with_named(pending, checker, first)
            if isinstance(result, NeedsManifests | Inflates | _Costly):
                self._start_large(pending, checker)
                continue
            if isinstance(result, tuple) and result[0] is Reason.PLAN_FAILED:
                self.metrics.crashed("check")
            self._note(pending, Check(checker.basis, result), outcome)
        looks = is_true(properties, CHECK_FILES_PROPERTY, default=self.looks_for_files)
        incomplete = await self._find_incomplete(landing, outcome) if looks else frozenset()
        for pending in landing:
            if pending.key in incomplete:
                continue
            if pending.checked is not None and pending.suspicion is None:
                outcome.candidates.append(pending.checked)
            elif pending.checked is not None and pending.suspicion is not None:
                outcome.suspects.append(
                    QuarantineVerdict(pending, *pending.suspicion, pending.conflict)
                )

    async def _find_incomplete(
        self, landing: Sequence[Pending], outcome: AdmissionOutcome
    ) -> frozenset[str]:
        """Look for the files of requests that prove no origin, once for each request. Add those
        that lack one to the refused or the failed, and return their keys.
        """
        unseen = [
            one
            for one in landing
            if one.checked is not None and not (one.is_proven or one.has_its_files)
        ]
        complete = await finish_in_turns(
            lambda one: self._has_its_files(one, outcome), unseen, at_once_max=_LOOKED_UP_MAX
        )
        return frozenset(
            one.key for one, has_all in zip(unseen, complete, strict=True) if not has_all
        )

    async def _has_its_files(self, pending: Pending, outcome: AdmissionOutcome) -> bool:
        paths = [] if pending.checked is None else added_paths(pending.checked)
        try:
            absent = await first_absent(self.large.storage, paths, at_once_max=_LOOKS_AT_ONCE)
        except FrazilError as error:
            outcome.failed.append((pending, error))
            return False
        if absent is None:
            self.waiting.files_seen(pending)
            return True
        message = f"data file `{absent[:PATH_SHOWN_MAX]}` does not exist"
        outcome.refused.append(QuarantineVerdict(pending, Reason.DATA_FILE_MISSING, message))
        return False

    async def close(self) -> None:
        """Cancel the checks that are under way."""
        await self.large.close()

    def _start_large(self, pending: Pending, checker: Checker) -> None:
        self.waiting.checked(pending, None)
        self.large.start(pending, checker)

    def _note(self, pending: Pending, check: Check, outcome: AdmissionOutcome) -> None:
        result = check.result
        if isinstance(result, CheckedRequest):
            self.waiting.checked(pending, check)
            return
        if check is not pending.check or isinstance(result, FrazilError):
            self.waiting.checked(pending, None)
        if isinstance(result, FrazilError):
            outcome.failed.append((pending, result))
        else:
            outcome.refused.append(QuarantineVerdict(pending, *result))

    async def _check_with_named(
        self, pending: Pending, checker: Checker, needs: NeedsManifests
    ) -> _First | FrazilError:
        try:
            read = await read_named(self.large.storage, needs.lengths)
        except InvalidRequestError as error:
            return Reason(error.reason), str(error)
        except FrazilError as error:
            return error
        return await asyncio.to_thread(_check_one, checker, pending, read, _work_left())


def _needs_much(first: NeedsManifests) -> bool:
    """Return whether the named manifests are more than a round can wait for, or keep."""
    return len(first.lengths) > NAMED_MAX or sum(first.lengths.values()) > LARGE_BYTES_MIN


def _work_left() -> WorkLeft:
    return WorkLeft(ENTRIES_MAX, _INFLATED_BYTES_MAX, _DECODED_BYTES_MAX)


async def _check_each(checker: Checker, waiting: Sequence[Pending]) -> list[_First]:
    """Check these: on the loop as long as it can wait, and in a thread from then on. Nothing is
    changed there."""
    size_bytes = sum(len(one.sealed.content) for one in waiting)
    first = _check_on_loop(checker, waiting) if size_bytes < OFF_LOOP_BYTES else []
    rest = waiting[len(first) :]
    if rest:
        first += await asyncio.to_thread(_check_all, checker, rest)
    return first


def _check_on_loop(checker: Checker, waiting: Sequence[Pending]) -> list[_First]:
    """Check as many of these as the work of one step of the loop allows."""
    results: list[_First] = []
    loop = WorkLeft(_LOOP_ENTRIES_MAX, _LOOP_INFLATED_BYTES_MAX, _LOOP_DECODED_BYTES_MAX)
    for pending in waiting:
        left = _work_left().within(loop)
        before = replace(left)
        result = _check_one(checker, pending, None, left)
        if isinstance(result, _Costly):
            break
        loop.spend(before, left)
        results.append(result)
    return results


def _check_all(checker: Checker, waiting: Sequence[Pending]) -> list[_First]:
    return [_check_one(checker, pending, None, _work_left()) for pending in waiting]


def _check_one(
    checker: Checker, pending: Pending, read: Mapping[str, bytes] | None, left: WorkLeft
) -> _First:
    try:
        checked = checker.check(pending.sealed, read, left=left)
        return within(checked, pending.inflated_bytes_max)
    except TooMuchWorkError:
        return _Costly()
    except InvalidRequestError as error:
        return Reason(error.reason), str(error)
    except Exception as error:  # noqa: BLE001  # one request must not stop the others
        log.exception("check.crashed", key=pending.key)
        return Reason.PLAN_FAILED, f"the check itself failed: {error!r}"
