"""Why a request is in quarantine: the public reason codes, and what an operator does about each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Reason(StrEnum):
    """Why a request is in quarantine. Codes are public: they are stored, printed and alarmed on."""

    REQUEST_TRUNCATED = "request_truncated"
    REQUEST_MALFORMED = "request_malformed"
    REQUEST_VERSION_UNKNOWN = "request_version_unknown"
    REQUEST_KEY_MISMATCH = "request_key_mismatch"
    REQUEST_TOO_LARGE = "request_too_large"
    HASH_MISMATCH = "hash_mismatch"
    CATALOG_MISMATCH = "catalog_mismatch"
    TABLE_UNKNOWN = "table_unknown"
    TABLE_UUID_MISMATCH = "table_uuid_mismatch"
    BRANCH_UNKNOWN = "branch_unknown"
    SCHEMA_MISMATCH = "schema_mismatch"
    SPEC_UNKNOWN = "spec_unknown"
    SPEC_MISMATCH = "spec_mismatch"
    FORMAT_VERSION_MISMATCH = "format_version_mismatch"
    MANIFEST_MALFORMED = "manifest_malformed"
    MANIFEST_TRUNCATED = "manifest_truncated"
    MANIFEST_MISSING = "manifest_missing"
    MANIFEST_CONTENT_MISMATCH = "manifest_content_mismatch"
    ENTRY_NOT_ADDED = "entry_not_added"
    ENTRY_SNAPSHOT_ID_SET = "entry_snapshot_id_set"
    ENTRY_SEQUENCE_NUMBER_SET = "entry_sequence_number_set"
    ROW_ID_SET = "row_id_set"
    NEGATIVE_COUNT = "negative_count"
    PARTITION_TYPE_MISMATCH = "partition_type_mismatch"
    COUNT_MISMATCH = "count_mismatch"
    PATH_NOT_ALLOWED = "path_not_allowed"
    PATH_WITHOUT_ATTEMPT = "path_without_attempt"
    PATH_REPEATED = "path_repeated"
    EPOCH_CONTENT_DIFFERS = "epoch_content_differs"
    EPOCH_LANDED_UNPROVEN = "epoch_landed_unproven"
    PRODUCER_FROZEN = "producer_frozen"
    UNSUPPORTED = "unsupported"
    COMMIT_REJECTED = "commit_rejected"
    PLAN_FAILED = "plan_failed"

    @property
    def advice(self) -> str:
        """What an operator does about it, one sentence."""
        return _ADVICE[self]


_RESEND = "Nothing can be read from it: discard it, and publish the micro-batch again."
_CLIENT = (
    "The client wrote a request that breaks the format: fix the client, then discard this one."
)
_REPLAY = "Make the table fit (or fix the writer), then `frazil quarantine replay` or `discard`."
_EPOCH = (
    "The producer's epoch counter was reset, or its checkpoint restored or cloned: compare both"
    " writes, then discard this one, or publish its files under another producer."
)

_ADVICE: Mapping[Reason, str] = {
    Reason.REQUEST_TRUNCATED: _RESEND,
    Reason.REQUEST_MALFORMED: _CLIENT,
    Reason.REQUEST_VERSION_UNKNOWN: "Upgrade the committer, then replay it.",
    Reason.REQUEST_KEY_MISMATCH: _CLIENT,
    Reason.REQUEST_TOO_LARGE: "Publish the files in several epochs, then discard this one.",
    Reason.HASH_MISMATCH: _RESEND,
    Reason.CATALOG_MISMATCH: "Point the producer at the inbox of its own catalog's committer.",
    Reason.TABLE_UNKNOWN: "Create or restore the table, then replay; or discard.",
    Reason.TABLE_UUID_MISMATCH: (
        "The table was dropped and created again: the files belong to the old one. Discard, or add"
        " them to the new table by hand."
    ),
    Reason.BRANCH_UNKNOWN: "Create the branch, then replay; or discard.",
    Reason.SCHEMA_MISMATCH: _REPLAY,
    Reason.SPEC_UNKNOWN: _REPLAY,
    Reason.SPEC_MISMATCH: _REPLAY,
    Reason.FORMAT_VERSION_MISMATCH: "Publish the files again in the table's format version.",
    Reason.MANIFEST_MALFORMED: _CLIENT,
    Reason.MANIFEST_TRUNCATED: _RESEND,
    Reason.MANIFEST_MISSING: _RESEND,
    Reason.MANIFEST_CONTENT_MISMATCH: _CLIENT,
    Reason.ENTRY_NOT_ADDED: _CLIENT,
    Reason.ENTRY_SNAPSHOT_ID_SET: _CLIENT,
    Reason.ENTRY_SEQUENCE_NUMBER_SET: _CLIENT,
    Reason.ROW_ID_SET: _CLIENT,
    Reason.NEGATIVE_COUNT: _CLIENT,
    Reason.PARTITION_TYPE_MISMATCH: _CLIENT,
    Reason.COUNT_MISMATCH: _CLIENT,
    Reason.PATH_NOT_ALLOWED: "Write files below the table's data location and publish again.",
    Reason.PATH_WITHOUT_ATTEMPT: "Put the attempt uuid into every file name and publish again.",
    Reason.PATH_REPEATED: _CLIENT,
    Reason.EPOCH_CONTENT_DIFFERS: _EPOCH,
    Reason.EPOCH_LANDED_UNPROVEN: (
        "The epoch landed too long ago to compare. If these are the same rows, discard it; if not,"
        " publish its files under another producer."
    ),
    Reason.PRODUCER_FROZEN: (
        "The table was rolled back or restored behind this producer's last commit. Decide which"
        " history is right; to go on from here, remove the producer's `frazil.producer.` table"
        " property and replay."
    ),
    Reason.UNSUPPORTED: "This version cannot commit that. Discard it, or upgrade and replay.",
    Reason.PLAN_FAILED: (
        "The committer itself failed on this request: keep it, report the log line of the time,"
        " upgrade, then replay."
    ),
    Reason.COMMIT_REJECTED: "The catalog refused the change itself: see its message, fix, replay.",
}
