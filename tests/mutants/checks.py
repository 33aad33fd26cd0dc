"""Breakages of what a request is checked for before it may join a batch."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_FORMS = ("tests/iceberg/schema/test_bound_forms.py",)
_WALK = ("tests/iceberg/splice/test_manifest_walk.py",)
_MAPS = ("tests/iceberg/test_addition_maps.py",)
_VALUES = ("tests/iceberg/entry/test_bound_values.py",)
_PAIRS = ("tests/iceberg/splice/test_pair_patterns.py",)
_LINE = ("tests/request/test_request.py -k twice",)
_CHECK = ("tests/plan/batch/test_request_check.py",)

CHECKS = (
    # --- The line ---
    Mutant(
        "repeated_keys_are_read",
        "committer/request/request_format.py",
        "    if repeated:\n",
        "    if not repeated and False:\n",
        _LINE,
    ),
    Mutant(
        "an_escape_hides_a_repeated_key",
        "committer/iceberg/values/json_reader.py",
        'b"\\\\" not in text and ',
        "",
        _LINE,
    ),
    Mutant(
        "escapes_hide_a_repeated_key",
        "committer/iceberg/values/json_reader.py",
        '        text = text.replace(rb"\\\\", b"").replace(rb"\\"", b"")\n',
        '        text = text.replace(rb"\\"", b"")\n',
        ("tests/request/test_request.py -k written",),
    ),
    Mutant(
        "unknown_keys_of_files_are_passed_over",
        "committer/plan/batch/submitted_manifest.py",
        "    if unknown:\n",
        "    if False:\n",
        _CHECK,
    ),
    Mutant(
        "files_are_written_unchecked",
        "committer/plan/batch/submitted_manifest.py",
        "            check_added_file(file, ManifestContent.DATA, format_version, forms)\n",
        "",
        _CHECK,
    ),
    Mutant(
        "digits_of_any_script_are_a_date",
        "committer/iceberg/values/calendar.py",
        "re.compile(_DATE, re.ASCII)",
        "re.compile(_DATE)",
        ("tests/iceberg/values/test_single_value.py -k ascii",),
    ),
    Mutant(
        "file_names_are_measured_in_characters",
        "committer/plan/batch/data_locations.py",
        'path[path.rfind("/") + 1 :].encode()) > FILE_NAME',
        'path[path.rfind("/") + 1 :]) > FILE_NAME',
        _CHECK,
    ),
    # --- Entries ---
    Mutant(
        "any_fields_are_version_1",
        "committer/iceberg/splice/manifest_walk.py",
        "    if newer:\n",
        "    if False:\n",
        _WALK,
    ),
    Mutant(
        "fields_of_delete_files_are_stepped_over",
        "committer/iceberg/splice/entry_stepper.py",
        "_NULL_IN_TAIL = (142, 143, 144, 145)",
        "_NULL_IN_TAIL = (142,)",
        _WALK,
    ),
    Mutant(
        "equality_ids_are_stepped_over",
        "committer/iceberg/splice/entry_stepper.py",
        "                raise Unexpected\n            position += len(_EMPTY)\n",
        "                position = _skip_optional(raw, position, (skip,)) - 2\n"
        "            position += len(_EMPTY)\n",
        _WALK,
    ),
    Mutant(
        "split_offsets_of_the_tail_before_fit_any_size",
        "committer/iceberg/splice/entry_stepper.py",
        " or last_split >= size >> 1:",
        ":",
        _WALK,
    ),
    Mutant(
        "split_offsets_in_any_order",
        "committer/iceberg/splice/entry_stepper.py",
        "offsets != sorted(offsets) or ",
        "",
        _WALK,
    ),
    Mutant(
        "a_known_layout_hides_a_sign",
        "committer/iceberg/entry/map_skeleton.py",
        "                        mask[before] |= _SIGN\n",
        "                        pass\n",
        _WALK,
    ),
    Mutant(
        "a_pattern_hides_a_sign",
        "committer/iceberg/splice/pair_patterns.py",
        "% _set(range(0, 256, 2))",
        "% _set(range(256))",
        (*_MAPS, *_WALK),
    ),
    # --- Bounds ---
    Mutant(
        "texts_are_any_bytes",
        "committer/iceberg/schema/bound_forms.py",
        "            return is_utf8(bound)\n",
        "            return True\n",
        _FORMS,
    ),
    Mutant(
        "a_known_layout_hides_bytes_that_are_no_text",
        "committer/iceberg/entry/map_skeleton.py",
        "= text_bits(maps[one.start : one.stop])",
        "= bytes(one.stop - one.start)",
        _FORMS,
    ),
    Mutant(
        "texts_of_a_known_layout_are_any_bytes",
        "committer/iceberg/entry/map_skeleton.py",
        "        taken = texts_of(maps, bounds)\n",
        "        taken = None\n",
        (*_FORMS, *_MAPS),
    ),
    Mutant(
        "a_text_is_known_by_bits_that_others_have",
        "committer/iceberg/entry/bound_values.py",
        "        if byte & fewer < low or ",
        "        if ",
        _VALUES,
    ),
    Mutant(
        "second_bytes_of_letters_are_any",
        "committer/iceberg/entry/bound_values.py",
        "        bits[found.end()] = _bits(text[found.end()], *_SECOND[found[0][0]])\n",
        "        pass\n",
        _VALUES,
    ),
    Mutant(
        "halves_of_two_texts_make_a_letter",
        "committer/iceberg/entry/bound_values.py",
        "            start = one.start - 1\n",
        "            start = one.start\n",
        _MAPS,
    ),
    Mutant(
        "what_lies_between_two_texts_is_text",
        "committer/iceberg/entry/bound_values.py",
        "before == pieces[-1][1] and ",
        "",
        _MAPS,
    ),
    Mutant(
        "a_known_layout_hides_digits",
        "committer/iceberg/entry/map_skeleton.py",
        "numbers is None or numbers.fit(raw, start)",
        "True",
        _FORMS,
    ),
    Mutant(
        "a_pattern_hides_digits",
        "committer/iceberg/splice/pair_patterns.py",
        "long(form.limited_length) + _below(form.limit, form.limited_length)",
        "_bytes(form.limited_length, ANY_BYTE)",
        _FORMS,
    ),
    Mutant(
        "a_pattern_hides_bytes_that_are_no_text",
        "committer/iceberg/splice/layout_pattern.py",
        "        texts += filter(None, found) if self._parts else found",
        "        texts += []",
        _FORMS,
    ),
    Mutant(
        "a_pattern_of_some_columns_does_not_count_them",
        "committer/iceberg/splice/layout_pattern.py",
        "            if not one.has_all(groups):\n",
        "            if False:\n",
        _MAPS,
    ),
    Mutant(
        "a_pattern_believes_sizes",
        "committer/iceberg/splice/layout_pattern.py",
        "            if groups[size] != ",
        "            if False and groups[size] != ",
        _MAPS,
    ),
    Mutant(
        "texts_of_a_block_are_any_bytes",
        "committer/iceberg/splice/entry_stepper.py",
        '    if not is_utf8(b"".join(walk.texts)):\n',
        "    if False:\n",
        _FORMS,
    ),
    Mutant(
        "maps_that_are_learned_have_a_column_twice",
        "committer/iceberg/splice/addition_maps.py",
        "        if len(set(columns)) != count:\n",
        "        if False:\n",
        _MAPS,
    ),
    Mutant(
        "counts_in_any_order_have_a_column_twice",
        "committer/iceberg/splice/any_order.py",
        "len(_ASCII.translate(None, ids)) == len(_ASCII) - count",
        "True",
        _MAPS,
    ),
    Mutant(
        "counts_in_any_order_have_a_column_of_two_bytes_twice",
        "committer/iceberg/splice/any_order.py",
        "len(set(each)) == count",
        "True",
        _MAPS,
    ),
    Mutant(
        "bounds_in_any_order_have_a_column_twice",
        "committer/iceberg/splice/any_order.py",
        "len(set(found)) != count or not",
        "not",
        _MAPS,
    ),
    Mutant(
        "maps_in_any_order_have_any_number_of_pairs",
        "committer/iceberg/splice/any_order.py",
        "    return plain == LONGS[count] or (sized == LONGS[-count] and size",
        "    return plain is not None or (size",
        _MAPS,
    ),
    Mutant(
        "maps_in_any_order_have_any_size",
        "committer/iceberg/splice/any_order.py",
        " and size == LONGS[len(body)])\n",
        ")\n",
        _MAPS,
    ),
    Mutant(
        "texts_in_any_order_are_any_bytes",
        "committer/iceberg/splice/any_order.py",
        "            texts += patterns.texts(body)\n",
        "            pass\n",
        _MAPS,
    ),
    Mutant(
        "texts_in_any_order_begin_anywhere",
        "committer/iceberg/splice/pair_patterns.py",
        'return rb"[\\x80-\\xff]?+(%b)"',
        'return rb"([\\x80-\\xff]?+%b)"',
        _MAPS,
    ),
    Mutant(
        "patterns_of_decimals_reach_a_little_further",
        "committer/iceberg/splice/pair_patterns.py",
        "sorted((end, byte + step))",
        "sorted((end, byte))",
        _PAIRS,
    ),
    Mutant(
        "patterns_mix_up_ids_of_two_bytes",
        "committer/iceberg/splice/pair_patterns.py",
        "        highs[tuple(sorted(found))].append(high)\n",
        "        highs[tuple(sorted(set().union(*lows.values())))].append(high)\n",
        _PAIRS,
    ),
    Mutant(
        "decoded_maps_have_a_column_twice",
        "committer/iceberg/avro/decoder.py",
        "    if is_strict and len(pairs) != total:\n",
        "    if False:\n",
        _WALK,
    ),
    Mutant(
        "columns_to_come_have_bounds",
        "committer/iceberg/schema/bound_forms.py",
        "        if 0 <= field_id <= self._column_id_max:\n",
        "        if 0 <= field_id:\n",
        _FORMS,
    ),
    Mutant(
        "bounds_are_those_of_older_columns",
        "committer/iceberg/schema/bound_forms.py",
        "    for schema in (*by_age, current):\n",
        "    for schema in (current, *by_age[::-1]):\n",
        _FORMS,
    ),
    Mutant(
        "decimal_partitions_have_any_digits",
        "committer/plan/batch/submitted_manifest.py",
        "            _check_digits(walked.partitions, fitting.precisions)\n",
        "",
        _CHECK,
    ),
    Mutant(
        "a_producer_that_the_catalog_cannot_name_is_accepted",
        "committer/plan/batch/request_check.py",
        "        _check_ledger_key(request, basis.property_key_chars_max)\n",
        "",
        ("tests/plan/batch/test_request_check.py -k cannot_name",),
    ),
    Mutant(
        "the_catalog_is_not_asked_for_the_names_that_it_takes",
        "committer/service/process/table_wiring.py",
        "            self._catalog.capabilities.property_key_chars_max,\n",
        "            None,\n",
        ("tests/service/ingest/test_bad_input.py -k cannot_name",),
    ),
    # --- Counting ---
    Mutant(
        "a_check_that_fails_is_not_counted",
        "committer/service/table/content_checks.py",
        '                self.metrics.crashed("check")\n',
        "                pass\n",
        ("tests/service/ingest/test_bad_input.py -k counted",),
    ),
)
