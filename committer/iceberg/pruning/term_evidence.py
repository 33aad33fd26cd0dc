"""Evidence of the values of one term: in a data file, or in the files of a manifest.

Missing metrics prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from committer.iceberg.expressions.compiling import Bound, Subject, Test


@dataclass(frozen=True, slots=True)
class Evidence(Generic[Subject]):
    """Bounds and tests of the values in a subject.

    `bounds` makes the bound that no value is below, and the one that none is above: None if
    unknown; what compares with nothing if it cannot be relied on: NaN (of old writers),
    `TurnedBounds`. Not every type has bounds. `only_…` is true where that is sure, `may_…` where it
    is not excluded.
    """

    bounds: Callable[[], tuple[Bound[Subject], Bound[Subject]]]
    may_have_nulls: Test[Subject]
    may_have_nans: Test[Subject]
    only_nulls: Test[Subject]
    only_nans: Test[Subject]
    # Surely only nulls, or only NaNs: no comparison matches those.
    only_incomparable: Test[Subject]

    def may_have_incomparable(self, subject: Subject) -> bool:
        """Return whether there may be nulls or NaNs, which match no comparison."""
        return self.may_have_nulls(subject) or self.may_have_nans(subject)
