"""Breakages of what a request is checked for before it may join a batch."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_FORMS = ("tests/iceberg/test_bound_forms.py",)
_WALK = ("tests/iceberg/test_manifest_walk.py",)
_LINE = ("tests/test_request.py -k twice",)
_CHECK = ("tests/plan/test_check.py",)

CHECKS = (
    # --- The line ---
    Mutant(
        "repeated_keys_are_read",
        "committer/request.py",
        "    if repeated:\n",
        "    if not repeated and False:\n",
        _LINE,
    ),
    Mutant(
        "space_hides_a_repeated_key",
        "committer/iceberg/json_reader.py",
        ' or b" :" in text',
        "",
        _LINE,
    ),
    Mutant(
        "escapes_hide_a_repeated_key",
        "committer/iceberg/json_reader.py",
        '        text = text.replace(rb"\\\\", b"").replace(rb"\\"", b"")\n',
        '        text = text.replace(rb"\\"", b"")\n',
        ("tests/test_request.py -k written",),
    ),
    Mutant(
        "unknown_keys_of_files_are_passed_over",
        "committer/plan/handed_manifest.py",
        "    if unknown:\n",
        "    if False:\n",
        _CHECK,
    ),
    Mutant(
        "files_are_written_unchecked",
        "committer/plan/handed_manifest.py",
        "            check_added_file(file, ManifestContent.DATA, format_version, forms)\n",
        "",
        _CHECK,
    ),
    Mutant(
        "digits_of_any_script_are_a_date",
        "committer/iceberg/calendar.py",
        "re.compile(_DATE, re.ASCII)",
        "re.compile(_DATE)",
        ("tests/iceberg/test_single_value.py -k ascii",),
    ),
    Mutant(
        "file_names_are_measured_in_characters",
        "committer/plan/locations.py",
        'path[path.rfind("/") + 1 :].encode()) > FILE_NAME',
        'path[path.rfind("/") + 1 :]) > FILE_NAME',
        _CHECK,
    ),
    # --- Entries ---
    Mutant(
        "any_fields_are_version_1",
        "committer/iceberg/manifest_walk.py",
        "    if newer:\n",
        "    if False:\n",
        _WALK,
    ),
    Mutant(
        "fields_of_delete_files_are_stepped_over",
        "committer/iceberg/entry_stepper.py",
        "_NULL_IN_TAIL = (142, 143, 144, 145)",
        "_NULL_IN_TAIL = (142,)",
        _WALK,
    ),
    Mutant(
        "equality_ids_are_stepped_over",
        "committer/iceberg/entry_stepper.py",
        "                raise Unexpected\n            position += len(_EMPTY)\n",
        "                position = _skip_optional(raw, position, (skip,)) - 2\n"
        "            position += len(_EMPTY)\n",
        _WALK,
    ),
    Mutant(
        "split_offsets_of_the_tail_before_fit_any_size",
        "committer/iceberg/entry_stepper.py",
        " or last_split >= size >> 1:",
        ":",
        _WALK,
    ),
    Mutant(
        "split_offsets_in_any_order",
        "committer/iceberg/entry_stepper.py",
        "offsets != sorted(offsets) or ",
        "",
        _WALK,
    ),
    Mutant(
        "a_known_layout_hides_a_sign",
        "committer/iceberg/map_skeleton.py",
        "                        mask[before] |= _SIGN\n",
        "                        pass\n",
        _WALK,
    ),
    Mutant(
        "a_known_shape_hides_a_sign",
        "committer/iceberg/sized_maps.py",
        ' and not int.from_bytes(body, "little") & shape[1]',
        "",
        ("tests/iceberg/test_sized_maps.py",),
    ),
    Mutant(
        "a_pattern_hides_a_sign",
        "committer/iceberg/map_patterns.py",
        "for even in range(0, 256, 2))",
        "for even in range(256))",
        ("tests/iceberg/test_sized_maps.py", *_WALK),
    ),
    # --- Bounds ---
    Mutant(
        "texts_are_any_bytes",
        "committer/iceberg/bound_forms.py",
        "            return is_utf8(bound)\n",
        "            return True\n",
        _FORMS,
    ),
    Mutant(
        "a_known_layout_hides_bytes_beyond_ascii",
        "committer/iceberg/map_skeleton.py",
        "bytes((_BEYOND_ASCII,))",
        "bytes(1)",
        _FORMS,
    ),
    Mutant(
        "texts_of_a_known_layout_are_any_bytes",
        "committer/iceberg/map_skeleton.py",
        "with_texts=not is_ascii",
        "with_texts=False",
        _FORMS,
    ),
    Mutant(
        "halves_of_two_texts_make_a_letter",
        "committer/iceberg/bound_values.py",
        'b"\\0".join(',
        'b"".join(',
        _FORMS,
    ),
    Mutant(
        "a_known_layout_hides_digits",
        "committer/iceberg/bound_values.py",
        "        return self._numbers is None or all(",
        "        return True or all(",
        _FORMS,
    ),
    Mutant(
        "a_pattern_hides_digits",
        "committer/iceberg/map_patterns.py",
        "                if number is not None and not is_below(number, limit):\n",
        "                if False:\n",
        _FORMS,
    ),
    Mutant(
        "a_pattern_hides_bytes_that_are_no_text",
        "committer/iceberg/map_patterns.py",
        "        if self._texts and not is_utf8(",
        "        if False and not is_utf8(",
        _FORMS,
    ),
    Mutant(
        "columns_to_come_have_bounds",
        "committer/iceberg/bound_forms.py",
        "        if 0 <= field_id <= self._column_id_max:\n",
        "        if 0 <= field_id:\n",
        _FORMS,
    ),
    Mutant(
        "bounds_are_those_of_older_columns",
        "committer/iceberg/bound_forms.py",
        "    for schema in (*by_age, current):\n",
        "    for schema in (current, *by_age[::-1]):\n",
        _FORMS,
    ),
    Mutant(
        "decimal_partitions_have_any_digits",
        "committer/plan/handed_manifest.py",
        "            _check_digits(walked.partitions, fitting.precisions)\n",
        "",
        _CHECK,
    ),
    # --- What is counted ---
    Mutant(
        "a_check_that_fails_is_not_counted",
        "committer/service/checking.py",
        '            crashed("check")\n',
        "            pass\n",
        ("tests/service/test_bad_input.py -k counted",),
    ),
)
