"""Breakages of the process around the committer: its health, its signals, its log, its files."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PROCESS = (
    # --- Health ---
    Mutant(
        "one_table_in_trouble_makes_the_committer_not_ready",
        "committer/service/health.py",
        'self.phase == "running" and not self.unreachable',
        'self.phase == "running" and not self.troubles',
        ("tests/service/test_http.py",),
    ),
    Mutant(
        "idle_committer_never_asks_its_catalog",
        "committer/service/run.py",
        "        readers.append(reachability.run())\n",
        "        reachability.run().close()\n",
        ("tests/service/test_run.py",),
    ),
)
