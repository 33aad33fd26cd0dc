"""Checks the content of requests that may land, and remembers against which basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from committer.errors import FrazilError, InvalidRequestError, InvariantError, NotFoundError
from committer.plan.check import CheckedRequest, Checker, NeedsManifests
from committer.ports import Storage
from committer.reason import Reason
from committer.request import SealedRequest
from committer.service.admitted import Admitted, Quarantining
from committer.service.log import log
from committer.service.pending import Pending
from committer.service.steps import off_loop_if_large

_Refusal = tuple[Reason, str]


async def check_all(
    landing: Sequence[Pending],
    checker: Checker,
    storage: Storage,
    admitted: Admitted,
    crashed: Callable[[str], None],
) -> None:
    """Add each to the candidates, the suspects, the refused or the failed. `crashed` counts
    internal errors; checks may run in another thread, so it is called here."""
    unchecked = [
        one for one in landing if one.checked is None or one.checked.basis is not checker.basis
    ]
    size_bytes = sum(len(one.sealed.content) for one in unchecked)
    results = await off_loop_if_large(size_bytes, _check_each, checker, unchecked)
    for pending, first in zip(unchecked, results, strict=True):
        pending.checked = None
        result = (
            await _check_with_named(pending, checker, storage, first)
            if isinstance(first, NeedsManifests)
            else first
        )
        if isinstance(result, CheckedRequest):
            pending.checked = result
        elif isinstance(result, FrazilError):
            admitted.failed.append((pending, result))
        else:
            reason, message = result
            if reason is Reason.PLAN_FAILED:
                crashed("check")
            admitted.refused.append(Quarantining(pending, reason, message))
    for pending in landing:
        if pending.checked is not None and pending.suspicion is None:
            admitted.candidates.append(pending.checked)
        elif pending.checked is not None and pending.suspicion is not None:
            admitted.suspects.append(Quarantining(pending, *pending.suspicion))


async def _check_with_named(
    pending: Pending, checker: Checker, storage: Storage, needs: NeedsManifests
) -> CheckedRequest | _Refusal | FrazilError:
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
) -> list[CheckedRequest | NeedsManifests | _Refusal]:
    return [_check_one(checker, pending.sealed, None) for pending in waiting]


def _check_one(
    checker: Checker, sealed: SealedRequest, read: dict[str, bytes] | None
) -> CheckedRequest | NeedsManifests | _Refusal:
    try:
        return checker.check(sealed, read)
    except InvalidRequestError as error:
        return Reason(error.reason), str(error)
    except Exception as error:  # noqa: BLE001  # one request must not stop the others
        log.exception("check.crashed", key=sealed.request.inbox_key)
        return Reason.PLAN_FAILED, f"the check itself failed: {error!r}"
