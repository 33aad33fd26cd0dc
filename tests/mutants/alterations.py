"""Breakages of changes without files: refs, schema, layout; picks of staged snapshots; tags."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_ALTER = "tests/plan/operations/test_alter.py -k "
_PICK = "tests/plan/operations/test_cherry_pick.py -k "
_TAGS = "tests/plan/cleanup/test_automatic_tags.py -k "
_REFS = "committer/plan/operations/alter_refs.py"
_PICKING = "committer/plan/operations/cherry_pick.py"
_TAGGING = "committer/plan/cleanup/automatic_tags.py"

ALTERATIONS = (
    Mutant(
        "default_is_stored_where_the_format_has_none",
        "committer/plan/operations/alter_columns.py",
        "    if default is not None and update.format_version < 3:\n",
        "    if False:\n",
        (_ALTER + "rows_to_come",),
    ),
    Mutant(
        "snapshot_is_picked_again_once_its_pick_has_expired",
        _PICKING,
        "    return _unknown_history(head, source) or _made_again(head, source)\n",
        "    return _made_again(head, source)\n",
        (_PICK + "may_have_expired",),
    ),
    Mutant(
        "branch_is_fast_forwarded_without_descent",
        _REFS,
        "    if not metadata.is_ancestor(known.snapshot_id, of=target.snapshot_id):\n",
        "    if metadata.snapshot_by_id(known.snapshot_id) is None:\n",
        (_ALTER + "descendants_only",),
    ),
    Mutant(
        "rollback_goes_to_any_snapshot",
        _REFS,
        "    if head is None or not metadata.is_ancestor(snapshot_id, of=head.snapshot_id):\n",
        "    if head is None:\n",
        (_ALTER + "goes_to_an_ancestor",),
    ),
    Mutant(
        "main_is_removed",
        _REFS,
        "    if name == MAIN:\n        raise InvalidMetadataError(f",
        "    if not name:\n        raise InvalidMetadataError(f",
        (_ALTER + "does_not_fit",),
    ),
    Mutant(
        "tag_is_moved_as_a_branch",
        _REFS,
        '    if known.type != "branch":\n',
        '    if known.type not in ("branch", "tag"):\n',
        (_ALTER + "never_moved",),
    ),
    Mutant(
        "tag_is_set_as_a_branch",
        _REFS,
        "    kind = absent if known is None else known.type\n",
        "    kind = absent if known is None else change.type\n",
        (_ALTER + "does_not_fit",),
    ),
    Mutant(
        "replaced_ref_loses_its_retention",
        _REFS,
        "    return (SetSnapshotRef(change.name, replace(known, snapshot_id=snapshot_id)),)\n",
        "    return (SetSnapshotRef(change.name, SnapshotRef(snapshot_id, kind)),)\n",
        (_ALTER + "keeps_its_retention",),
    ),
    Mutant(
        "rollback_to_a_time_takes_the_oldest",
        _REFS,
        "    latest = max(older,",
        "    latest = min(older,",
        (_ALTER + "last_snapshot_before",),
    ),
    Mutant(
        "changes_before_a_refused_one_are_made",
        "committer/plan/operations/alter.py",
        '            return Conflict(ConflictCode.INCOMPATIBLE, f"{place}{error}")\n',
        "            if number == 1:\n"
        '                return Conflict(ConflictCode.INCOMPATIBLE, f"{place}{error}")\n',
        (_ALTER + "no_change_of_a_request",),
    ),
    Mutant(
        "change_is_planned_on_the_table_before_the_request",
        "committer/plan/operations/alter.py",
        "            planned = _planned(change, altered, branch)\n",
        "            planned = _planned(change, metadata, branch)\n",
        (_ALTER + "one_request_adds_one_schema",),
    ),
    Mutant(
        "union_takes_files_with_other_ids",
        "committer/plan/batch/needed_columns.py",
        "        if column is None or column.field_id != field.field_id:\n",
        "        if column is None:\n",
        (_ALTER + "have_other_ids",),
    ),
    Mutant(
        "settings_of_a_column_stay_behind",
        "committer/plan/operations/alter_columns.py",
        "        *changed_properties(metadata.properties, properties),\n",
        "",
        (_ALTER + "follow_its_name",),
    ),
    Mutant(
        "request_changes_the_ledger",
        "committer/request/alterations.py",
        "        if key.startswith(_OWN_PREFIX):\n",
        '        if key == "frazil.":\n',
        ("tests/request/test_alterations.py -k no_table_could_take",),
    ),
    # --- Cherry-pick ---
    Mutant(
        "pick_trusts_the_label_append",
        _PICKING,
        "    if _loses_deletes(entries, rows, removes_data=is_replacement):\n",
        "    if False:\n",
        (_PICK + "adds_deletes", _PICK + "removes_deletes"),
    ),
    Mutant(
        "pick_minds_deletes_that_apply_to_nothing",
        _PICKING,
        "any((one.sequence_number or 0) >= oldest for one in gone)\n",
        "any(map(bool, gone))\n",
        (_PICK + "no_data",),
    ),
    Mutant(
        "snapshot_is_picked_twice",
        _PICKING,
        "    while last is not None:\n",
        "    while last is None:\n",
        (_PICK + "picked_once",),
    ),
    Mutant(
        "published_wap_id_is_forgotten",
        _PICKING,
        "    found = (_entry(snapshot, WAP_ID), _entry(snapshot, _PUBLISHED_WAP_ID))\n",
        "    found = (_entry(snapshot, WAP_ID),)\n",
        (_PICK + "published_once",),
    ),
    Mutant(
        "merged_files_are_picked_too",
        _PICKING,
        "if one.status == ManifestEntryStatus.ADDED]\n",
        "if one.status != ManifestEntryStatus.DELETED]\n",
        (_PICK + "merged_from_its_parent",),
    ),
    Mutant(
        "replacement_is_picked_over_new_files",
        _PICKING,
        "    if is_replacement:\n        conflict = _changed_since",
        "    if False:\n        conflict = _changed_since",
        (_PICK + "while_nothing_was_added",),
    ),
    Mutant(
        "replacement_of_another_line_is_picked",
        _PICKING,
        "    if since is None:\n",
        "    since = since or frozenset()\n    if not since:\n        return None\n    if False:\n",
        (_PICK + "is_no_ancestor",),
    ),
    Mutant(
        "pick_of_a_pick_is_told_from_its_source",
        _PICKING,
        "        found[source] = last = known.get(source)\n",
        "        found[source], last = known.get(source), None\n",
        (_PICK + "pick_of_a_pick",),
    ),
    Mutant(
        "pick_of_what_was_published_does_not_publish_it",
        _PICKING,
        "    if wap_ids := _wap_ids(source):\n        summary[_PUBLISHED_WAP_ID] = wap_ids[0]\n",
        "    if wap_id := _entry(source, WAP_ID):\n        summary[_PUBLISHED_WAP_ID] = wap_id\n",
        (_PICK + "publishes_it",),
    ),
    Mutant(
        "published_snapshot_is_offered_again",
        _PICKING,
        "        published = _published_before(head, wap_id)\n",
        "        published = None\n",
        (_PICK + "is_not_offered",),
    ),
    Mutant(
        "live_file_is_picked_again",
        _PICKING,
        "    if found is None:\n        return None\n    message = f",
        "    if found is None or added:\n        return None\n    message = f",
        (_PICK + "is_live_on_the_branch",),
    ),
    Mutant(
        "replacement_of_a_file_by_itself_is_refused",
        _PICKING,
        "[path for path in one.paths if path not in removed]",
        "one.paths",
        (_PICK + "by_itself",),
    ),
    # --- Automatic tags ---
    Mutant(
        "tag_names_what_is_current_now",
        _TAGGING,
        "    return snapshot_as_of(metadata, time_ms)\n",
        "    return metadata.current_snapshot\n",
        (_TAGS + "current_then",),
    ),
    Mutant(
        "age_of_a_tag_counts_from_its_time",
        _TAGGING,
        "policy.keep_ms + max(0, due_ms - snapshot.timestamp_ms)",
        "policy.keep_ms",
        (_TAGS + "quiet_table",),
    ),
    Mutant(
        "tags_are_set_without_bound",
        _TAGGING,
        "snapshot is None or _tags_count(metadata) >= TAGS_MAX",
        "snapshot is None",
        (_TAGS + "can_bear",),
    ),
    Mutant(
        "tagged_snapshot_expires_with_the_tag",
        "committer/plan/commit/commit.py",
        "    if expired and tag and tag.ref.snapshot_id in expired.snapshot_ids:\n",
        "    if expired and tag and tag.ref.snapshot_id in ():\n",
        ("tests/plan/commit/test_tagged_commits.py -k chosen_before",),
    ),
    Mutant(
        "commit_to_a_branch_tags_main",
        "committer/plan/commit/commit.py",
        "due_tag(state.metadata, now_ms=attempt.now_ms) if batch.branch == MAIN else None",
        "due_tag(state.metadata, now_ms=attempt.now_ms)",
        ("tests/plan/commit/test_tagged_commits.py -k another_branch",),
    ),
    # --- From the request to its end ---
    Mutant(
        "requests_behind_a_change_are_checked_before_it",
        "committer/service/table/admission.py",
        "            return waiting[: position + 1]\n",
        "            return waiting\n",
        ("tests/service/table/test_alterations.py -k behind_a_change_are",),
    ),
    Mutant(
        "change_of_an_empty_table_looks_rolled_back",
        "committer/plan/ledger/ledger.py",
        "        if landed.snapshot_id == NO_SNAPSHOT:\n",
        "        if landed.snapshot_id == -1:\n",
        ("tests/service/table/test_alterations.py -k freezes_nobody",),
    ),
    Mutant(
        "change_moves_no_head_where_nothing_else_is_checked",
        "committer/plan/commit/alter_commit.py",
        "    if is_append or (moves_head and not ",
        "    if is_append or (False and not ",
        ("tests/service/table/test_alterations.py -k in_one_swap",),
    ),
    Mutant(
        "staged_snapshot_becomes_the_head",
        "committer/plan/commit/staged_commit.py",
        "    updates = (*(AddSnapshot(one) for one in plan.snapshots), *ledger.updates)\n",
        "    updates = plan.swap.updates\n",
        ("tests/service/table/test_staging.py -k has_no_ref",),
    ),
    Mutant(
        "ledger_names_the_staged_snapshot",
        "committer/plan/commit/staged_commit.py",
        "_at_head(state, batch)",
        "plan.landed",
        ("tests/service/table/test_staging.py -k rolled_back",),
    ),
    Mutant(
        "snapshot_is_staged_on_any_head",
        "committer/plan/commit/staged_commit.py",
        "requirements=(*swap.requirements, unmoved)",
        "requirements=swap.requirements",
        ("tests/plan/commit/test_staged_commit.py",),
    ),
    Mutant(
        "picked_snapshot_is_not_named",
        "committer/plan/commit/operation_step.py",
        "extra={**produced.extra, **picked.summary}",
        "extra=produced.extra",
        ("tests/service/table/test_staging.py -k made_again",),
    ),
    Mutant(
        "nested_keys_of_a_change_are_not_counted",
        "committer/request/request_format.py",
        'change.model_dump(mode="json", ',
        "change.model_dump(",
        ("tests/cli/changes/test_change_commands.py -k orders_its",),
    ),
    # --- Columns that a producer brings along ---
    Mutant(
        "request_is_checked_without_its_own_columns",
        "committer/plan/batch/request_check.py",
        "self._with_needed_columns(request) if request.changes else self",
        "self",
        ("tests/service/table/test_needed_columns.py -k come_in_the_swap",),
    ),
    Mutant(
        "append_with_columns_shares_a_swap",
        "committer/plan/operations/batch_steps.py",
        " or request.stage_only or bool(request.changes)\n",
        " or request.stage_only\n",
        ("tests/service/table/test_needed_columns.py -k add_it_once",),
    ),
    Mutant(
        "member_of_a_transaction_is_staged",
        "committer/plan/batch/request_check.py",
        "    if request.transaction and (request.changes or request.stage_only or is_pick):\n",
        "    if False:\n",
        ("tests/plan/batch/test_request_check.py -k nothing_is_staged",),
    ),
)
