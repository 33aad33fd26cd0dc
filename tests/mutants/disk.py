"""Breakages of what keeps an inbox safe that others can write to, and of what ends a process."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_ENTRIES = "tests/storage/test_foreign_entries.py"
_NAMED = "tests/service/requests/test_foreign_entries.py"

DISK = (
    # --- Listing, reading and writing ---
    Mutant(
        "links_below_an_inbox_are_listed",
        "committer/storage/disk/walk.py",
        "        if is_link and self._is_guarded:\n",
        "        if is_link and not self._is_guarded:\n",
        (_ENTRIES,),
    ),
    Mutant(
        "folder_that_became_a_link_is_entered",
        "committer/storage/disk/walk.py",
        "_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK\n",
        "_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK\n",
        (_ENTRIES + " -k vanishes",),
    ),
    Mutant(
        "folder_without_rights_hides_nothing",
        "committer/storage/disk/walk.py",
        "        self._skips.add(location, SkipKind.NO_ACCESS)\n",
        "        self._skips.add(location, SkipKind.DEVICE)\n",
        (_ENTRIES + " -k rights",),
    ),
    Mutant(
        "folders_are_entered_however_deep",
        "committer/storage/disk/walk.py",
        "        if len(levels) >= self._levels_max:\n",
        "        if len(levels) < 0:\n",
        (_ENTRIES + " -k level",),
    ),
    Mutant(
        "name_that_is_not_utf_8_is_listed",
        "committer/storage/disk/walk.py",
        "        self._skip(base + ascii(name)[1:-1], SkipKind.NAME)\n        return False\n",
        "        return True\n",
        (_ENTRIES + " -k spell",),
    ),
    Mutant(
        "device_is_opened",
        "committer/storage/disk/local_files.py",
        "        _require_regular(location, os.stat(name, dir_fd=folder, follow_symlinks=follow))",
        "        pass",
        (_ENTRIES + " -k socket",),
    ),
    Mutant(
        "object_is_read_whatever_its_size",
        "committer/storage/disk/local_files.py",
        "            require_size(location, status.st_size, size_bytes_max)\n",
        "",
        ("tests/contract/test_storage.py -k takes_is_not_read",),
    ),
    Mutant(
        "link_in_a_path_is_followed",
        "committer/storage/disk/local_files.py",
        "(flags if number == len(names) else PASS) | os.O_NOFOLLOW,\n",
        "(flags if number == len(names) else PASS),\n",
        (_ENTRIES + " -k no_part",),
    ),
    Mutant(
        "request_is_written_behind_a_link",
        "committer/storage/disk/durable_writes.py",
        "            _require_no_links(folders[0], roots)\n",
        "",
        (_ENTRIES + " -k no_part",),
    ),
    # --- Naming ---
    Mutant(
        "what_claims_a_place_is_only_counted",
        "committer/service/requests/foreign_entries.py",
        "    return kind not in _MAY_BE_A_REQUEST and key.parts is not None\n",
        "    return False\n",
        (_NAMED,),
    ),
    Mutant(
        "foreign_entry_is_named_in_each_listing",
        "committer/service/requests/foreign_entries.py",
        "        self._named = named\n",
        "        self._named = set()\n",
        (_NAMED,),
    ),
    Mutant(
        "request_is_judged_by_a_record_of_what_stood_there_before",
        "committer/service/table/verdicts.py",
        "        if record.by_reference:\n            message",
        "        if record.by_reference is None:\n            message",
        (_NAMED + " -k later",),
    ),
    Mutant(
        "discard_takes_the_request_that_came_later",
        "committer/storage/inbox/replays.py",
        "        return None if is_request else record.key\n",
        "        return record.key\n",
        (_NAMED,),
    ),
    Mutant(
        "stray_takes_a_place_of_requests_in_quarantine",
        "committer/storage/inbox/inbox.py",
        "        return self.folder + _quarantine_name(key)\n",
        "        return self.folder + key\n",
        (_NAMED,),
    ),
    Mutant(
        "what_a_folder_hides_counts_as_gone",
        "committer/service/requests/listing.py",
        "        return folder in self._found or self._may_hide(folder)\n",
        "        return folder in self._found\n",
        (_NAMED + " -k cannot_be_seen",),
    ),
    # --- Temporary files, the end ---
    Mutant(
        "temporary_file_goes_while_it_is_written",
        "committer/storage/disk/temporaries.py",
        "age_s > KEPT_S:\n",
        "age_s > -KEPT_S:\n",
        ("tests/storage/disk/test_temporaries.py",),
    ),
    Mutant(
        "stuck_thread_keeps_the_process",
        "committer/service/process/startup.py",
        "stop, partial(end_by, settings.service.drain_timeout_s + CLOSING_S_MAX)",
        "stop",
        ("tests/service/process/test_last_exit.py -k begins",),
    ),
    Mutant(
        "tables_share_the_threads_of_one_place",
        "committer/storage/disk/local.py",
        'return f"files of {caller.get()}" if caller.get() else "files"',
        'return "files"',
        ("tests/storage/disk/test_local.py -k threads_of_their",),
    ),
    Mutant(
        "place_that_hangs_is_waited_for_without_a_bound",
        "committer/place_threads.py",
        "if now_s - call.moved_s >= self._answer_s and not call.future.done():",
        "if False:",
        ("tests/test_place_threads.py -k in_time",),
    ),
    Mutant(
        "calls_behind_a_place_that_hangs_wait_for_a_thread",
        "committer/place_threads.py",
        "            if self._all_hang(now_s):\n",
        "            if False:\n",
        ("tests/test_place_threads.py -k at_once",),
    ),
    Mutant(
        "step_of_a_long_call_is_no_progress",
        "committer/place_threads.py",
        "        call.moved_s = _now_s()\n\n\ndef _now_s",
        "        pass\n\n\ndef _now_s",
        ("tests/test_place_threads.py -k progress",),
    ),
    Mutant(
        "body_that_trickles_is_read_for_ever",
        "committer/storage/http/http_client.py",
        "limit.reschedule(self._body_until_s(response.content_length))",
        "limit.reschedule(None)",
        ("tests/storage/http/test_http_client.py -k trickles",),
    ),
    # --- Names and keys ---
    Mutant(
        "name_that_no_catalog_takes_is_waited_for",
        "committer/catalog/namespaces.py",
        "        raise NoSuchTableError(str(error)) from error\n",
        "        raise\n",
        ("tests/contract/test_catalog.py -k no_table_can_have",),
    ),
    Mutant(
        "key_that_something_else_has_taken_is_read_on",
        "committer/queue/redis_stream.py",
        "        return [shard for shard in shards if self._keys[shard] not in self._taken]\n",
        "        return list(shards)\n",
        ("tests/queue/test_redis_stream.py -k taken",),
    ),
)
