"""Each catalog's own mapping of what befalls a swap to the four answers, or to an error."""

from __future__ import annotations

from committer.errors import CatalogUnavailableError
from committer.ports.pointer_swap import Committed, Rejected, SwapAnswer, Unknown
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.swap_moments import Moment

Answer = SwapAnswer | CatalogUnavailableError

# In doubt everywhere; and where no call was sent that could apply anything, surely not applied.
_ALL: dict[Fault, type[Answer]] = {
    Fault.LOST_REPLY: Unknown,
    Fault.REQUEST_LOST: Unknown,
    Fault.LANDS_LATE: Unknown,
    Fault.UNAVAILABLE: CatalogUnavailableError,
}
_JUDGING = {Fault.REJECTED: Rejected}
# They read the pointer after a refusal, and find themselves there.
_RESENDING = {Fault.RESENT: Committed}
_BY_ADAPTER: dict[str, dict[Fault, type[Answer]]] = {
    "memory": {**_ALL, **_JUDGING, Fault.RESENT: Unknown},
    "sqlite": {**_ALL, **_JUDGING},
    "sqlite-v0": {**_ALL, **_JUDGING},
    "postgres": {**_ALL, **_JUDGING},
    "postgres-v0": {**_ALL, **_JUDGING},
    "files": {**_ALL, **_RESENDING},
    "dynamodb": {**_ALL, **_RESENDING},
    "glue": {**_ALL, **_RESENDING},
    "s3tables": {**_ALL, **_RESENDING},
    "hive": {**_ALL, **_RESENDING},
    "hive-2": {**_ALL, **_RESENDING},
    "rest": {**_ALL, **_JUDGING, **_RESENDING},
}


def faults_of(adapter: str) -> frozenset[Fault]:
    """Return the faults that a swap of this adapter can have."""
    return frozenset(_BY_ADAPTER[adapter])


def check_answer(adapter: str, moment: Moment, answer: Answer | None) -> None:
    """Check what the swap was answered that the moment met. Errors: `AssertionError`."""
    if moment.fault is not None:
        expected = _BY_ADAPTER[adapter][moment.fault]
        assert isinstance(answer, expected), f"{adapter}: {moment}: {answer}"
