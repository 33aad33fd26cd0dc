"""The condition of one table: whether its committer gets on, and why not."""

from __future__ import annotations

from committer.errors import AccessError, CatalogUnavailableError, reason_of
from committer.ports.pointer_swap import SwapAnswer
from committer.request.table_identifier import TableIdentifier
from committer.service.telemetry.health import Component, Health
from committer.service.telemetry.lag import LagCause
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics

STUCK_AFTER = 4
# Has a condition of its own while it answers no table.
CATALOG = "catalog"


class TableCondition:
    """Counts the failures of a table in a row, and shows them. `failures`: since it last got on.
    `lag_cause`: why none of its requests lands; None while nothing is known against that.
    """

    def __init__(self, identifier: TableIdentifier, health: Health, metrics: Metrics) -> None:
        self._identifier = identifier
        self._health = health
        self._metrics = metrics
        self._component = Component(f"table {identifier}", kind="table", table=str(identifier))
        self._deferred = Component(
            f"deferred requests of {identifier}", kind="deferred requests", table=str(identifier)
        )
        self._is_frozen = False
        self.failures = 0
        self.lag_cause: LagCause | None = None

    @property
    def is_stuck(self) -> bool:
        """Whether it has got nowhere for a while: frozen, or its servers do not let it."""
        return self.failures >= STUCK_AFTER

    def failed(self, event: str, error: Exception) -> None:
        """Note one more failure."""
        self.failures += 1
        self.lag_cause = LagCause.UNAVAILABLE
        of_catalog = isinstance(error, CatalogUnavailableError | AccessError)
        if self._degraded(reason_of(error), cause=CATALOG if of_catalog else None):
            log.warning(f"table.{event}", table=str(self._identifier), error=str(error))

    def frozen(self, error: Exception) -> None:
        """Note that the table lacks a known commit."""
        self._is_frozen = True
        self._metrics.frozen(self._identifier, is_frozen=True)
        self.failed("frozen", error)
        self.lag_cause = LagCause.HELD

    def crashed(self, error: Exception) -> None:
        """Note a bug of ours; called where it was caught."""
        log.exception("table.crashed", table=str(self._identifier))
        self._metrics.crashed("table")
        self.failed("crashed", error)

    def answered(self, answer: SwapAnswer) -> None:
        """Count the answer to a swap."""
        self._metrics.swap_answered(self._identifier, answer)

    def swap_crashed(self, crash: Exception) -> None:
        """Note a bug of ours, or of a catalog's client, that has hidden the answer to a swap."""
        log.exception("swap.crashed", table=str(self._identifier), exc_info=crash)
        self._metrics.crashed("swap")

    def unanswered(self, cause: str) -> None:
        """Note that the catalog does not answer swaps."""
        self.lag_cause = LagCause.UNAVAILABLE
        self._degraded(f"no answer to a swap: {cause}", cause=CATALOG)

    def answered_alike(self, count: int, cause: str) -> None:
        """Note that swaps get one and the same answer, which tells nothing, and the table stays."""
        log.warning("commit.unknown_alike", table=str(self._identifier), cause=cause, swaps=count)
        self.lag_cause = LagCause.UNAVAILABLE
        self._degraded(
            f"{count} swaps got the same answer, which says nothing of their fate, and the table"
            f" has not moved: {cause}",
        )

    def returned(self) -> None:
        """Note that deferred requests wait in the inbox, as they are too many for memory."""
        why = (
            "requests that cannot land for now are too many for memory, and wait in the inbox: see"
            " `request.deferred` and `producer.stopped` in the log"
        )
        if self._health.degraded(self._deferred, why):
            log.warning("requests.returned", table=str(self._identifier))

    def none_returned(self) -> None:
        """Clear the condition of the deferred requests."""
        if self._health.healthy(self._deferred):
            log.warning("requests.recovered", table=str(self._identifier))

    def recovered(self, *, is_sure: bool) -> None:
        """Clear the condition after a success.
        `is_sure`: no answer is outstanding that the condition may be about."""
        self.failures = 0
        if is_sure and self.clear():
            log.warning("table.recovered", table=str(self._identifier))

    def clear(self) -> bool:
        """Clear the condition. Return whether one was shown."""
        self.lag_cause = None
        if self._is_frozen:
            self._is_frozen = False
            self._metrics.frozen(self._identifier, is_frozen=False)
        return self._health.healthy(self._component)

    def _degraded(self, why: str, *, cause: str | None = None) -> bool:
        return self._health.degraded(self._component, why, cause=cause)
