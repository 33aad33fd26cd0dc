"""Breakages of what a write from Spark asks for, and of which rows of an upsert count."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_OPERATION = ("tests/workers/sink/test_operation.py",)
_PUBLICATION = ("tests/workers/sink/test_publication.py",)
_OPTIONS = ("tests/workers/settings/test_overwrite_options.py",)
_ROWS = ("tests/workers/upserts/test_winning_rows.py",)
_SPECS = ("tests/workers/upserts/test_delete_specs.py",)
_COLUMNS = ("tests/workers/upserts/test_upsert_columns.py",)
_DIGESTS = ("tests/workers/upserts/test_key_digests.py",)

_PARTITIONS = ("tests/workers/arrow/test_partitioning.py -k another_digit",)
_LOCATIONS = ("tests/iceberg/values/test_locations.py",)

SPARK_WRITES = (
    # --- Partition values ---
    Mutant(
        "row_that_no_manifest_can_hold_is_published",
        "workers/arrow/partitioning.py",
        "            if isinstance(value, Decimal) and not kind.holds(value):\n",
        "            if isinstance(value, Decimal) and not kind.holds(value * 0):\n",
        _PARTITIONS,
    ),
    Mutant(
        "long_folders_of_one_beginning_are_one",
        "committer/iceberg/values/locations.py",
        '    mark = f"~{sha256(encoded).hexdigest()[:16]}"\n',
        '    mark = f"~{sha256(encoded[:200]).hexdigest()[:16]}"\n',
        _LOCATIONS,
    ),
    # --- Overwrites ---
    Mutant(
        "overwrite_without_rows_does_nothing",
        "workers/sink/operation.py",
        "_needs(options, needs), takes_none=True)",
        "_needs(options, needs))",
        _OPERATION,
    ),
    Mutant(
        "isolated_overwrite_has_a_base_without_its_number",
        "workers/sink/operation.py",
        '        "base_sequence_number": head.sequence_number,\n',
        "",
        _OPERATION,
    ),
    Mutant(
        "overwrites_land_in_any_order",
        "workers/sink/publication.py",
        "ordered=is_in_order and (is_named or not is_batch),",
        "ordered=False,",
        _PUBLICATION,
    ),
    Mutant(
        "upserts_land_in_any_order",
        "workers/sink/operation.py",
        'return self.name != "append"',
        'return self.name == "overwrite"',
        _OPERATION,
    ),
    Mutant(
        "conflict_that_nobody_hears_is_not_kept",
        "workers/settings/options.py",
        '    can_rerun = can_rerun and wait == "committed"\n',
        "",
        _OPTIONS,
    ),
    Mutant(
        "denied_receipts_fail_a_durable_request",
        "workers/requests/mailbox.py",
        "        except (QueueUnavailableError, AccessError) as error:\n",
        "        except QueueUnavailableError as error:\n",
        ("tests/workers/requests/test_publisher.py -k denies",),
    ),
    Mutant(
        "producer_stops_at_a_conflict_that_it_was_told",
        "workers/requests/publisher.py",
        "            if not await self._quarantine.is_told_only(found):\n",
        "            if found.key:\n",
        ("tests/workers/requests/test_publisher.py -k only_told",),
    ),
    Mutant(
        "bounds_follow_the_order_of_a_files_rows",
        "workers/files/file_writer.py",
        "target.properties, file_schema, target.schema, target.table_order",
        "target.properties, file_schema, target.schema, target.sort_order",
        ("tests/workers/arrow/test_column_metrics.py -k sort_order",),
    ),
    # --- Rows of an upsert ---
    Mutant(
        "last_row_that_comes_counts",
        "workers/upserts/winning_rows.py",
        "np.lexsort((ranks, codes))",
        "np.lexsort((codes,))",
        _ROWS,
    ),
    Mutant(
        "only_the_last_two_rows_of_a_key_tie",
        "workers/upserts/winning_rows.py",
        "is_best[:-1] & ~is_last[:-1])",
        "is_best[:-1] & ~is_last[:-1] & is_last[1:])",
        _ROWS,
    ),
    Mutant(
        "rows_that_tie_are_dropped_on_the_way",
        "workers/upserts/winning_rows.py",
        "best.order[best.is_best]",
        "best.order[best.is_last]",
        _ROWS,
    ),
    Mutant(
        "a_key_may_be_null",
        "workers/upserts/upsert_columns.py",
        '            if column.null_count:\n                raise PublishError(f"upsert: key',
        '            if False:\n                raise PublishError(f"upsert: key',
        _COLUMNS,
    ),
    Mutant(
        "a_row_without_an_order_counts_last",
        "workers/upserts/upsert_columns.py",
        "        if column.null_count:\n            raise PublishError(\n",
        "        if False:\n            raise PublishError(\n",
        _COLUMNS,
    ),
    # --- Old rows of its keys ---
    Mutant(
        "deletes_reach_the_newest_spec_only",
        "workers/upserts/delete_specs.py",
        "    return tuple(specs)\n",
        "    return tuple(specs[-1:])\n",
        _SPECS,
    ),
    Mutant(
        "deletes_of_a_table_that_was_unpartitioned_are_partitioned",
        "workers/upserts/delete_specs.py",
        "        if spec.is_unpartitioned:\n",
        "        if spec.is_unpartitioned and len(specs) == 1:\n",
        _SPECS,
    ),
    Mutant(
        "partition_need_not_follow_from_the_key",
        "workers/upserts/delete_specs.py",
        "        if outside := _sources(spec) - frozenset(key_ids):\n",
        "        if not (_sources(spec) & frozenset(key_ids)) and (outside := _sources(spec)):\n",
        _SPECS,
    ),
    # --- One task for each key ---
    Mutant(
        "keys_of_tasks_that_are_not_neighbors_are_not_compared",
        "workers/upserts/key_digests.py",
        "        if first != second:\n",
        "        if abs(first - second) == 1:\n",
        _DIGESTS,
    ),
    Mutant(
        "keys_of_two_tasks_are_published",
        "workers/sink/publication.py",
        "    if shared_by([each.key_digests for each in written]) is None:\n",
        "    if written:\n",
        _PUBLICATION,
    ),
    Mutant(
        "files_of_an_upsert_that_was_refused_stay",
        "workers/sink/publication.py",
        '    delete_files(files, target.access, "an upsert that was refused")\n',
        "",
        _PUBLICATION,
    ),
    Mutant(
        "first_column_alone_is_the_key_of_a_task",
        "workers/upserts/key_digests.py",
        "blake2b(repr(key).encode()",
        "blake2b(repr(key[0]).encode()",
        _DIGESTS,
    ),
    # --- Tables that writes make, and values that they cast ---
    Mutant(
        "creation_whose_answer_is_lost_is_given_up",
        "committer/creation/create_table.py",
        "            await world.sleep(spread_s(delay_s, world))\n",
        "            raise\n",
        ("tests/creation/test_create_table.py -k lost",),
    ),
    Mutant(
        "loser_of_a_race_to_create_a_table_fails",
        "workers/creation/ensured_table.py",
        "        return publisher.load_table(new.identifier), False  # another was faster\n",
        "        raise\n",
        ("tests/workers/creation/test_spark_table.py -k outrun",),
    ),
    Mutant(
        "union_makes_what_is_required_optional",
        "workers/creation/wider_schema.py",
        "        return NestedField(known.field_id, known.name, kind, known.required)\n",
        "        return NestedField(known.field_id, known.name, kind, False)\n",
        ("tests/workers/creation/test_wider_schema.py",),
    ),
    Mutant(
        "half_a_cent_is_rounded_to_even",
        "workers/arrow/store_assignment.py",
        'round_mode="half_towards_infinity"',
        'round_mode="half_to_even"',
        ("tests/workers/arrow/test_store_assignment.py",),
    ),
    Mutant(
        "file_of_row_groups_that_overlap_counts_as_sorted",
        "workers/files/data_file_writer.py",
        "            self._is_in_order &= sorter.follows(",
        "            self._is_in_order |= sorter.follows(",
        ("tests/workers/files/test_file_writer.py -k goes_on_where",),
    ),
    Mutant(
        "avro_writes_what_is_inside_of_nulls",
        "workers/files/formats/avro_encoding.py",
        "    if not array.null_count:\n        return encode(array)\n",
        "    if len(array):\n        return encode(array)\n",
        ("tests/workers/files/test_avro_files.py -k null_or_empty",),
    ),
    Mutant(
        "avro_has_all_items_of_a_part_of_a_batch",
        "workers/files/formats/avro_encoding.py",
        "    return values.slice(first, last - first)\n",
        "    return values\n",
        ("tests/workers/files/test_avro_files.py -k part_of_a_batch",),
    ),
    Mutant(
        "avro_decimals_lose_their_sign",
        "workers/files/formats/avro_encoding.py",
        "digits[:, _DECIMAL_BYTES - width :]",
        "digits[:, :width]",
        ("tests/workers/files/test_avro_files.py -k extremes",),
    ),
    Mutant(
        "empty_avro_lists_have_a_second_end",
        "workers/files/formats/avro_encoding.py",
        "    return [_longs(counts, counts > 0), blocks, ends]\n",
        "    return [_longs(counts, None), blocks, ends]\n",
        ("tests/workers/files/test_avro_files.py -k null_or_empty",),
    ),
    Mutant(
        "avro_block_counts_the_rows_of_the_file",
        "workers/files/formats/avro_format.py",
        "        self._waiting_rows = self._waiting_bytes = 0\n\n    def close",
        "        self._waiting_bytes = 0\n\n    def close",
        ("tests/workers/files/test_avro_files.py -k codec_of_the_table",),
    ),
    Mutant(
        "deletes_have_the_format_of_the_data",
        "workers/files/deletes/position_delete_writer.py",
        "        properties = delete_properties(target.properties)\n",
        "        properties = target.properties\n",
        ("tests/workers/files/deletes/test_position_delete_writer.py -k format_of_deletes",),
    ),
    Mutant(
        "orc_writes_what_is_inside_of_null_structs",
        "workers/files/formats/orc_nulls.py",
        "        members = [_deep(member) for member in array.flatten()]\n",
        "        members = [_deep(array.field(at)) for at in range(array.type.num_fields)]\n",
        ("tests/workers/files/test_orc_files.py -k inside_of_a_null_struct",),
    ),
    Mutant(
        "orc_writes_the_nulls_of_other_rows",
        "workers/files/formats/orc_nulls.py",
        "    whole = rows.take(np.arange(rows.num_rows)).combine_chunks()\n",
        "    whole = rows.combine_chunks()\n",
        ("tests/workers/files/test_orc_files.py -k part_of_a_batch",),
    ),
    Mutant(
        "orc_has_old_times_in_lists",
        "workers/files/formats/orc_times.py",
        '        yield from _times(f"{path}.element", array.flatten())\n',
        "        return\n",
        ("tests/workers/files/test_orc_files.py -k fraction_of_a_second",),
    ),
    Mutant(
        "orc_takes_old_times_for_whole_seconds",
        "workers/files/formats/orc_times.py",
        '_UNITS = {"us": 1_000_000, "ns": 1_000_000_000}',
        '_UNITS = {"us": 1_000, "ns": 1_000_000_000}',
        ("tests/workers/files/test_orc_files.py -k fraction_of_a_second",),
    ),
    Mutant(
        "orc_bounds_are_of_the_last_stripe",
        "workers/files/formats/row_metrics.py",
        "        known = self._ranges.get(leaf.field_id, (low, high))\n",
        "        known = low, high\n",
        ("tests/workers/files/test_orc_files.py -k all_rows_of_a_file",),
    ),
    Mutant(
        "orc_bounds_are_of_nan",
        "workers/files/formats/row_metrics.py",
        "            column = column.filter(pc.invert(is_nan))\n",
        "",
        ("tests/workers/files/test_orc_files.py -k or_nan",),
    ),
    Mutant(
        "orc_rows_wait_for_their_stripe",
        "workers/files/formats/orc_format.py",
        "            stripe_size=_STRIPE_BYTES_LEAST,\n",
        "            stripe_size=self._options.stripe_bytes * 100,\n",
        ("tests/workers/files/test_orc_files.py -k none_of_it_waits",),
    ),
    Mutant(
        "null_struct_leaves_nulls_in_its_required_fields",
        "workers/arrow/arrow_columns.py",
        "    return _without_nulls(array)\n\n\ndef",
        "    return array\n\n\ndef",
        ("tests/workers/files/test_file_writer.py -k required_fields",),
    ),
    Mutant(
        "unpartitioned_table_is_distributed_by_hash",
        "workers/distribution/distribution_mode.py",
        '    has_keys = is_partitioned or (mode == "range" and is_sorted)\n',
        "    has_keys = is_partitioned or is_sorted\n",
        ("tests/workers/distribution/test_distribution_mode.py",),
    ),
    Mutant(
        "write_takes_rows_of_another_distribution_than_its_option",
        "workers/distribution/distribution_mode.py",
        '    if asked not in ("none", mark):\n',
        '    if asked != "none" and mark is None:\n',
        ("tests/workers/distribution/test_distribution_mode.py",),
    ),
)
