"""Breakages of storages, catalogs and queues. Some of what notices them starts a real server."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ADAPTERS = (
    # --- Storage ---
    Mutant(
        "equal_content_is_not_compared",
        "committer/ports.py",
        "        if standing != created.content:\n",
        "        if standing is None:\n",
        ("tests/storage/test_inbox.py",),
    ),
    Mutant(
        "replayed_request_comes_back_before_its_record_goes",
        "committer/storage/replays.py",
        "        await self._quarantine.delete((key,))\n        await self._inbox.put(sealed)\n",
        "        await self._inbox.put(sealed)\n        await self._quarantine.delete((key,))\n",
        ("tests/storage/test_replays.py",),
    ),
    Mutant(
        "replay_keeps_no_copy",
        "committer/storage/replays.py",
        "        await self._keep_copy(key, kept)\n",
        "",
        ("tests/storage/test_replays.py",),
    ),
    Mutant(
        "file_gets_its_name_unsynced",
        "committer/storage/file_writes.py",
        "            if goes_on:\n                os.fsync(item.descriptor)\n",
        "            if goes_on:\n                pass\n",
        ("tests/storage/test_local.py -k synced",),
    ),
    Mutant(
        "folder_is_not_synced",
        "committer/storage/file_writes.py",
        "            os.fsync(descriptor)\n        finally:\n",
        "            pass\n        finally:\n",
        ("tests/storage/test_local.py -k synced",),
    ),
    Mutant(
        "folder_is_not_synced_behind_what_exists_already",
        "committer/storage/file_writes.py",
        "        item.folders.extend(_above(item.folders[0]))\n",
        "        item.folders.clear()\n",
        ("tests/storage/test_local.py",),
    ),
    Mutant(
        "create_overwrites",
        "committer/storage/file_writes.py",
        "        os.link(item.temporary, item.path)\n",
        "        os.replace(item.temporary, item.path)\n",
        ("tests/contract/test_storage.py -k local",),
    ),
    Mutant(
        "replace_does_not_compare_the_etag",
        "committer/storage/file_writes.py",
        "        if before is None or etag_of(before) != etag:\n",
        "        if before is None:\n",
        ("tests/contract/test_storage.py -k local",),
    ),
    Mutant(
        "write_to_s3_has_no_condition",
        "committer/storage/s3_writes.py",
        '        return {"IfNoneMatch": "*"} if self.etag is None else {"IfMatch": self.etag}\n',
        "        return {}\n",
        ("tests/storage/test_s3.py",),
    ),
    Mutant(
        "refusal_of_a_write_that_was_sent_twice_is_believed",
        "committer/storage/s3_calls.py",
        "        self.in_doubt = self.in_doubt or not surely_not_applied(error)\n",
        "        self.in_doubt = self.in_doubt and surely_not_applied(error)\n",
        ("tests/storage/test_s3.py",),
    ),
    Mutant(
        "refused_condition_counts_although_it_was_sent_twice",
        "committer/catalog/dynamodb.py",
        '            return Unknown("the swap was sent twice below us, and others have committed'
        ' since")\n',
        "            return Conflict()\n",
        ("tests/catalog/test_dynamodb.py -k arrives_again",),
    ),
    Mutant(
        "own_success_counts_as_a_conflict",
        "committer/catalog/dynamodb.py",
        "        if layout.text_of(item, layout.LOCATION) == swap.metadata_location:\n",
        "        if layout.text_of(item, layout.LOCATION) is None:\n",
        ("tests/catalog/test_dynamodb.py -k sent_twice",),
    ),
    Mutant(
        "lost_answer_of_dynamodb_counts_as_not_applied",
        "committer/aws_errors.py",
        "is_throttled(error) or (_says_why(error) and 300 <= status_of(error) < 500)\n",
        "True\n",
        ("tests/catalog/test_dynamodb.py -k may_have_applied", "tests/test_aws.py"),
    ),
    Mutant(
        "update_does_not_name_the_base",
        "committer/catalog/sql_layout.py",
        "            .where(row, tables.c.metadata_location == base)\n",
        "            .where(row)\n",
        ("tests/contract/test_catalog.py -k sql",),
    ),
    Mutant(
        "error_of_a_sent_commit_counts_as_not_applied",
        "committer/catalog/sql.py",
        "            if commit_sent:\n",
        "            if not commit_sent and commit_sent:\n",
        ("tests/catalog/test_sql.py -k unknown",),
    ),
    Mutant(
        "pointer_in_memory_is_set_without_its_condition",
        "committer/catalog/memory.py",
        "        if self._locations.get(identifier) != swap.base.metadata_location:\n",
        "        if identifier not in self._locations:\n",
        ("tests/contract/test_catalog.py -k memory",),
    ),
    # --- Queue ---
    Mutant(
        "group_begins_at_the_end",
        "committer/queue/redis_stream.py",
        '("XGROUP", "CREATE", key, GROUP, "0", "MKSTREAM")',
        '("XGROUP", "CREATE", key, GROUP, "$", "MKSTREAM")',
        ("tests/contract/test_queue.py",),
    ),
    Mutant(
        "acknowledged_entry_stays_in_the_stream",
        "committer/queue/redis_stream.py",
        'redis.call("XDEL", KEYS[1], unpack(ARGV, 2))\n',
        "",
        ("tests/contract/test_queue.py",),
    ),
    Mutant(
        "unseen_answer_of_a_read_is_not_looked_for",
        "committer/queue/redis_stream.py",
        "                if not settled:\n",
        "                if settled and not settled:\n",
        ("tests/contract/test_queue.py", "tests/queue/test_redis_stream.py"),
    ),
    Mutant(
        "failed_acknowledgement_leaves_no_doubt",
        "committer/queue/redis_stream.py",
        "        except FrazilError:\n            self._doubts += 1\n            raise\n",
        "        except FrazilError:\n            raise\n",
        ("tests/queue/test_redis_stream.py", "tests/contract/test_queue.py"),
    ),
    Mutant(
        "receipts_that_came_meanwhile_go_with_those_taken",
        "committer/queue/redis_receipts.py",
        '        forget = [("XDEL", key, *taken)] if taken else []\n',
        '        forget = [("DEL", key)] if taken else []\n',
        ("tests/contract/test_queue.py", "tests/queue/test_redis_stream.py"),
    ),
    # --- Endpoints ---
    Mutant(
        "connections_without_a_limit",
        "committer/service/http_connections.py",
        "        while len(self._open) >= self.limits.connections_max:\n",
        "        while False:\n",
        ("tests/service/test_http_connections.py -k four_hundred",),
    ),
    Mutant(
        "slow_head_has_all_the_time",
        "committer/service/http_connections.py",
        "        self._all.opened(self)\n        self._allow(self._limits.request_s_max, _LATE)\n",
        "        self._all.opened(self)\n        self._allow(3_600.0, _LATE)\n",
        ("tests/service/test_http_connections.py -k sends_no_whole_head",),
    ),
    Mutant(
        "every_byte_of_a_head_begins_its_time_anew",
        "committer/service/http_connections.py",
        "            self._is_idle = False\n            self._allow",
        "            self._allow",
        ("tests/service/test_http_connections.py -k byte_by_byte",),
    ),
    Mutant(
        "http_errors_repeat_the_request",
        "committer/service/http_connections.py",
        '            resp.text = f"{resp.status}\\n"\n',
        "            pass\n",
        ("tests/service/test_http_connections.py -k whatever_a_client_sends",),
    ),
)
