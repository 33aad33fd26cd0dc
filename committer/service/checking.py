"""Checks the content of requests that may land, and remembers against which basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from committer.errors import FrazilError, InvalidRequestError, InvariantError, NotFoundError
from committer.plan.check import CheckedRequest, Checker, NeedsManifests
from committer.ports import Storage
from committer.reason import Reason
from committer.request import SealedRequest
from committer.service.admitted import Admitted, Quarantining
from committer.service.large_checks import LargeChecks
from committer.service.large_requests import LARGE_BYTES_MIN
from committer.service.log import log
from committer.service.pending import Pending, Refusal
from committer.service.steps import off_loop_if_large

# Such a check may take 50 ms, where each entry has to be decoded.
ENTRIES_MAX = 500


async def check_all(
    landing: Sequence[Pending],
    checker: Checker,
    storage: Storage,
    admitted: Admitted,
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
            _note(pending, pending.found[1], admitted)
        elif pending.checked is None or pending.checked.basis is not checker.basis:
            unchecked.append(pending)
    for pending in _costly(unchecked, checker):
        pending.checked = pending.found = None
        unchecked.remove(pending)
        large.start(pending, checker)
    size_bytes = sum(len(one.sealed.content) for one in unchecked)
    results = await off_loop_if_large(size_bytes, _check_each, checker, unchecked)
    for pending, first in zip(unchecked, results, strict=True):
        pending.checked = None
        if isinstance(first, NeedsManifests) and sum(first.lengths.values()) > LARGE_BYTES_MIN:
            large.start(pending, checker)
            continue
        result = (
            await _check_with_named(pending, checker, storage, first)
            if isinstance(first, NeedsManifests)
            else first
        )
        if isinstance(result, tuple) and result[0] is Reason.PLAN_FAILED:
            crashed("check")
        _note(pending, result, admitted)
    for pending in landing:
        if pending.checked is not None and pending.suspicion is None:
            admitted.candidates.append(pending.checked)
        elif pending.checked is not None and pending.suspicion is not None:
            admitted.suspects.append(Quarantining(pending, *pending.suspicion))


def _costly(unchecked: Sequence[Pending], checker: Checker) -> list[Pending]:
    """Those whose check may take longer than the loop can wait, whatever their size."""
    return [
        one
        for one in unchecked
        if one.is_large
        or not one.sealed.is_whole
        or checker.entries_announced(one.sealed) > ENTRIES_MAX
    ]


def _note(
    pending: Pending, result: CheckedRequest | Refusal | FrazilError, admitted: Admitted
) -> None:
    pending.checked = None
    if isinstance(result, CheckedRequest):
        pending.checked = result
    elif isinstance(result, FrazilError):
        pending.found = None
        admitted.failed.append((pending, result))
    else:
        reason, message = result
        admitted.refused.append(Quarantining(pending, reason, message))


async def _check_with_named(
    pending: Pending, checker: Checker, storage: Storage, needs: NeedsManifests
) -> CheckedRequest | Refusal | FrazilError:
    read: dict[str, bytes] = {}
    for location, length in needs.lengths.items():
        try:
            read[location] = await storage.get(location, length=length + 1)
        except NotFoundError as error:
            message = f"the manifest `{location[:512]}` cannot be read: {str(error)[:512]}"
            return Reason.MANIFEST_MISSING, message
        except FrazilError as error:
            return error
    result = await off_loop_if_large(
        sum(needs.lengths.values()), _check_one, checker, pending.sealed, read
    )
    if isinstance(result, NeedsManifests):
        raise InvariantError(f"asked twice for the manifests of `{pending.key}`")
    return result


def _check_each(
    checker: Checker, waiting: Sequence[Pending]
) -> list[CheckedRequest | NeedsManifests | Refusal]:
    return [_check_one(checker, pending.sealed, None) for pending in waiting]


def _check_one(
    checker: Checker, sealed: SealedRequest, read: dict[str, bytes] | None
) -> CheckedRequest | NeedsManifests | Refusal:
    try:
        return checker.check(sealed, read)
    except InvalidRequestError as error:
        return Reason(error.reason), str(error)
    except Exception as error:  # noqa: BLE001  # one request must not stop the others
        log.exception("check.crashed", key=sealed.request.inbox_key)
        return Reason.PLAN_FAILED, f"the check itself failed: {error!r}"
