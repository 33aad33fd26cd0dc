"""Lets committers forget one-shot producers within seconds, where a scenario is to show what comes
behind that: entries stay for a quarter of an hour otherwise, and tombstones for a week. And lets
all of them look for dangling deletes more often than once a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from committer.plan.ledger import one_shots
from committer.service.upkeep import dangling_remover, ledger_upkeep

SOON = (
    (ledger_upkeep, "ONE_SHOT_KEPT_S", 1.5),
    (one_shots, "KEPT_MS", 6_000),
    (one_shots, "_GROUP_MS", 2_000),
    (one_shots, "_GROUP_MAX", 3),
    (one_shots, "TOMBSTONES_MAX", 12),
)
OFTEN = ((dangling_remover, "LOOK_INTERVAL_S", 0.5),)


@contextmanager
def forgetting(*, soon: bool) -> Iterator[None]:
    """Let all committers of a run forget soon, if `soon`."""
    with ExitStack() as stack:
        for module, name, value in (*OFTEN, *(SOON if soon else ())):
            stack.enter_context(patch.object(module, name, value))
        yield
