"""Breakages of what is refused, and what is written, where other engines share the table."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FORMAT = (
    # --- Partitions that Iceberg Java does not write as they are read ---
    Mutant(
        "fixed_partitions_are_created",
        "committer/iceberg/metadata_check.py",
        "    found = fixed_field(spec, schema)\n    if found is not None:\n",
        "    found = fixed_field(spec, schema)\n    if found is not None and not spec.fields:\n",
        ("tests/iceberg/test_new_table.py -k fixed",),
    ),
    Mutant(
        "fixed_partitions_are_committed",
        "committer/plan/handed_manifest.py",
        "    if fixed is not None:\n",
        "    if fixed is not None and not spec.fields:\n",
        ("tests/plan/test_check.py -k fixed",),
    ),
    Mutant(
        "void_fields_have_values",
        "committer/plan/handed_manifest.py",
        "            _check_void(walked.partitions, fitting.void_places)\n",
        "",
        ("tests/plan/test_check.py -k void",),
    ),
)
