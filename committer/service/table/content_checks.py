"""Checks the content of requests that may land, and remembers against which basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from committer.errors import FrazilError, InvalidRequestError, NotFoundError
from committer.plan.request_check import CheckedRequest, Checker, Inflates, NeedsManifests, within
from committer.plan.submitted_manifest import EntriesLeft, TooManyEntriesError
from committer.ports.storage import Storage
from committer.reason import Reason
from committer.service.requests.large_requests import LARGE_BYTES_MIN
from committer.service.requests.pending import Pending, Refusal
from committer.service.table.admission_outcome import AdmissionOutcome, QuarantineVerdict
from committer.service.table.large_checks import LargeChecks
from committer.service.tasks.steps import off_loop_if_large
from committer.service.telemetry.log import log

# Such a check may take 50 ms, where each entry has to be decoded.
ENTRIES_MAX = 500
# Manifests that a request names by path, each a read.
NAMED_MAX = 4


@dataclass(frozen=True, slots=True)
class _Costly:
    """Its check may take longer than the loop can wait, whatever its size."""


_First = CheckedRequest | NeedsManifests | Inflates | _Costly | Refusal


async def check_all(
    landing: Sequence[Pending],
    checker: Checker,
    storage: Storage,
    outcome: AdmissionOutcome,
    large: LargeChecks,
    crashed: Callable[[str], None],
) -> None:
    """Add each to the candidates, the suspects, the refused or the failed; what takes long is
    handed to `large`, and comes with a later round. `crashed` counts internal errors; checks may
    run in another thread, so it is called here.
    """
    unchecked = []
    for pending in landing:
        if pending.found is not None and pending.found[0] is checker.basis:
            _note(pending, pending.found[1], outcome)
        elif pending.checked is None or pending.checked.basis is not checker.basis:
            pending.checked = pending.found = None
            if pending.is_large or not pending.sealed.is_whole:
                large.start(pending, checker)
            else:
                unchecked.append(pending)
    size_bytes = sum(len(one.sealed.content) for one in unchecked)
    results = await off_loop_if_large(size_bytes, _check_each, checker, unchecked)
    for pending, first in zip(unchecked, results, strict=True):
        result = (
            await _check_with_named(pending, checker, storage, first)
            if isinstance(first, NeedsManifests) and not _needs_much(first)
            else first
        )
        if isinstance(result, NeedsManifests | Inflates | _Costly):
            large.start(pending, checker)
            continue
        if isinstance(result, tuple) and result[0] is Reason.PLAN_FAILED:
            crashed("check")
        _note(pending, result, outcome)
    for pending in landing:
        if pending.checked is not None and pending.suspicion is None:
            outcome.candidates.append(pending.checked)
        elif pending.checked is not None and pending.suspicion is not None:
            outcome.suspects.append(QuarantineVerdict(pending, *pending.suspicion))


def _needs_much(first: NeedsManifests) -> bool:
    """Whether the manifests that it names are more than a round can wait for, or keep."""
    return len(first.lengths) > NAMED_MAX or sum(first.lengths.values()) > LARGE_BYTES_MIN


def _note(
    pending: Pending, result: CheckedRequest | Refusal | FrazilError, outcome: AdmissionOutcome
) -> None:
    pending.checked = None
    if isinstance(result, CheckedRequest):
        pending.checked = result
    elif isinstance(result, FrazilError):
        pending.found = None
        outcome.failed.append((pending, result))
    else:
        reason, message = result
        outcome.refused.append(QuarantineVerdict(pending, reason, message))


async def _check_with_named(
    pending: Pending, checker: Checker, storage: Storage, needs: NeedsManifests
) -> _First | FrazilError:
    read: dict[str, bytes] = {}
    for location, length in needs.lengths.items():
        try:
            read[location] = await storage.get(location, length=length + 1)
        except NotFoundError as error:
            message = f"the manifest `{location[:512]}` cannot be read: {str(error)[:512]}"
            return Reason.MANIFEST_MISSING, message
        except FrazilError as error:
            return error
    return _check_one(checker, pending, read)


def _check_each(checker: Checker, waiting: Sequence[Pending]) -> list[_First]:
    return [_check_one(checker, pending, None) for pending in waiting]


def _check_one(checker: Checker, pending: Pending, read: dict[str, bytes] | None) -> _First:
    try:
        checked = checker.check(pending.sealed, read, left=EntriesLeft(ENTRIES_MAX))
        return within(checked, pending.inflated_bytes_max)
    except TooManyEntriesError:
        return _Costly()
    except InvalidRequestError as error:
        return Reason(error.reason), str(error)
    except Exception as error:  # noqa: BLE001  # one request must not stop the others
        log.exception("check.crashed", key=pending.key)
        return Reason.PLAN_FAILED, f"the check itself failed: {error!r}"
