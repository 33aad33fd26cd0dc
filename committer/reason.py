"""The public reason codes of requests in quarantine, and an operator's next step for each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Reason(StrEnum):
    """The reason for which a request is in quarantine. Codes are public: they are stored, printed
    and alarmed on.
    """

    REQUEST_TRUNCATED = "request_truncated"
    REQUEST_MALFORMED = "request_malformed"
    JSON_KEY_REPEATED = "json_key_repeated"
    FILE_KEY_UNKNOWN = "file_key_unknown"
    REQUEST_VERSION_UNKNOWN = "request_version_unknown"
    REQUEST_KEY_MISMATCH = "request_key_mismatch"
    REQUEST_TOO_LARGE = "request_too_large"
    REQUEST_NOT_A_FILE = "request_not_a_file"
    ATTEMPT_MISMATCH = "attempt_mismatch"
    HASH_MISMATCH = "hash_mismatch"
    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_INVALID = "signature_invalid"
    SIGNATURE_KEY_UNKNOWN = "signature_key_unknown"
    SIGNATURE_KEY_NOT_ALLOWED = "signature_key_not_allowed"
    SIGNATURE_EXPIRED = "signature_expired"
    UNSIGNED_OPERATION = "unsigned_operation"
    CATALOG_MISMATCH = "catalog_mismatch"
    TABLE_UNKNOWN = "table_unknown"
    TABLE_UUID_MISMATCH = "table_uuid_mismatch"
    BRANCH_UNKNOWN = "branch_unknown"
    PRODUCER_ID_TOO_LONG = "producer_id_too_long"
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
    DELETE_FIELD_SET = "delete_field_set"
    NEGATIVE_COUNT = "negative_count"
    BOUND_MALFORMED = "bound_malformed"
    COLUMN_REPEATED = "column_repeated"
    SPLIT_OFFSETS_MALFORMED = "split_offsets_malformed"
    PARTITION_TYPE_MISMATCH = "partition_type_mismatch"
    COUNT_MISMATCH = "count_mismatch"
    PATH_NOT_ALLOWED = "path_not_allowed"
    FILE_NAME_TOO_LONG = "file_name_too_long"
    PATH_WITHOUT_ATTEMPT = "path_without_attempt"
    PATH_REPEATED = "path_repeated"
    LOCATION_NOT_ALLOWED = "location_not_allowed"
    DATA_FILE_MISSING = "data_file_missing"
    VECTOR_REPEATED = "vector_repeated"
    FILTER_UNBOUND = "filter_unbound"
    EPOCH_CONTENT_DIFFERS = "epoch_content_differs"
    EPOCH_LANDED_UNPROVEN = "epoch_landed_unproven"
    PRODUCER_FROZEN = "producer_frozen"
    CONFLICT = "conflict"
    TRANSACTION_INCOMPLETE = "transaction_incomplete"
    UNSUPPORTED = "unsupported"
    COMMIT_REJECTED = "commit_rejected"
    PLAN_FAILED = "plan_failed"

    @property
    def meaning(self) -> str:
        """Return what is wrong with such a request, in one sentence."""
        return _MEANING[self]

    @property
    def advice(self) -> str:
        """Return what an operator does about it, in one sentence."""
        return _ADVICE[self]


_MEANING: Mapping[Reason, str] = {
    Reason.REQUEST_TRUNCATED: "The object ends before its line or its manifests do.",
    Reason.REQUEST_MALFORMED: (
        "The line is not what the schema says, or bytes follow the last manifest."
    ),
    Reason.JSON_KEY_REPEATED: (
        "An object in the line has one key twice, and readers differ in which value counts."
    ),
    Reason.FILE_KEY_UNKNOWN: "A file in `files` has a key that the format does not have.",
    Reason.REQUEST_VERSION_UNKNOWN: "A `request-version` that this committer does not read.",
    Reason.REQUEST_KEY_MISMATCH: "It lies under another key than its line says.",
    Reason.REQUEST_TOO_LARGE: (
        "The line or the object is larger than allowed, or its check has met a limit of time or"
        " memory, which the message names. An object that is too large is not read: it stays in the"
        " inbox, and its record only names it."
    ),
    Reason.REQUEST_NOT_A_FILE: (
        "A link, FIFO, socket, device or folder stands in the inbox where a request would. It is"
        " not opened: it stays there, and its record only names it."
    ),
    Reason.ATTEMPT_MISMATCH: (
        "Its attempt is not the UUIDv5 of its table uuid, branch, producer, epoch and nonce."
    ),
    Reason.HASH_MISMATCH: "A manifest does not have the length or hash that its reference names.",
    Reason.SIGNATURE_MISSING: "Its table wants signed requests, and it has no signature.",
    Reason.SIGNATURE_INVALID: "Its signature is not that of its content by the key that it names.",
    Reason.SIGNATURE_KEY_UNKNOWN: "It names a key that the committer does not have.",
    Reason.SIGNATURE_KEY_NOT_ALLOWED: "Its key is not for this table, or not for this operation.",
    Reason.SIGNATURE_EXPIRED: "It became durable after the time that its signature is good for.",
    Reason.UNSIGNED_OPERATION: (
        "It has no signature that was verified, and its operation needs one on this table."
    ),
    Reason.CATALOG_MISMATCH: "It is for another catalog.",
    Reason.TABLE_UNKNOWN: "The catalog has no such table.",
    Reason.TABLE_UUID_MISMATCH: "The table of that name has another uuid now.",
    Reason.BRANCH_UNKNOWN: "The table has no such branch.",
    Reason.PRODUCER_ID_TOO_LONG: (
        "The ledger's property of its producer and branch would have a longer name than this"
        " catalog takes."
    ),
    Reason.SCHEMA_MISMATCH: (
        "A field id or type in a manifest, or the field id of a bound, is in no schema of the"
        " table."
    ),
    Reason.SPEC_UNKNOWN: "The table has no partition spec of that id.",
    Reason.SPEC_MISMATCH: (
        "The spec in a manifest has other fields than the table's, or another id than its"
        " reference."
    ),
    Reason.FORMAT_VERSION_MISMATCH: (
        "A manifest of a newer format version than the table, or with fields of a newer one than"
        " its header says (1 if it says none)."
    ),
    Reason.MANIFEST_MALFORMED: "A manifest is no valid Avro file, or breaks the specification.",
    Reason.MANIFEST_TRUNCATED: "A manifest ends in the middle.",
    Reason.MANIFEST_MISSING: "A manifest that is named by path does not exist.",
    Reason.MANIFEST_CONTENT_MISMATCH: (
        "A manifest holds deletes where its reference says data, or the other way round."
    ),
    Reason.ENTRY_NOT_ADDED: "An entry has another status than added.",
    Reason.ENTRY_SNAPSHOT_ID_SET: "An entry names a snapshot id, which must be inherited.",
    Reason.ENTRY_SEQUENCE_NUMBER_SET: "An entry names a sequence number, which must be inherited.",
    Reason.ROW_ID_SET: "A file has a first row id, which the commit assigns.",
    Reason.DELETE_FIELD_SET: (
        "A data file has equality ids, a referenced data file, or a content offset or size, which"
        " only delete files have."
    ),
    Reason.NEGATIVE_COUNT: "A record count, value count, file size or column size below zero.",
    Reason.BOUND_MALFORMED: (
        "A lower or upper bound that is no value of its column's type; readers that plan by it"
        " would fail."
    ),
    Reason.COLUMN_REPEATED: (
        "A map of metrics of a file has one column twice, and readers differ in which value counts."
    ),
    Reason.SPLIT_OFFSETS_MALFORMED: (
        "Split offsets that are negative, not in ascending order, or behind the end of the file."
    ),
    Reason.PARTITION_TYPE_MISMATCH: "Partition values of other types than the spec's.",
    Reason.COUNT_MISMATCH: (
        "A manifest holds other counts of files or rows than its reference says."
    ),
    Reason.PATH_NOT_ALLOWED: (
        "A path outside the table's places, in another spelling, or with a file name that has two."
    ),
    Reason.FILE_NAME_TOO_LONG: (
        "A file name of more than 255 bytes, which many file systems cannot hold."
    ),
    Reason.PATH_WITHOUT_ATTEMPT: (
        "A file name without the attempt, or in which another uuid follows the attempt."
    ),
    Reason.PATH_REPEATED: (
        "Two files of one name, in whatever folders, upper and lower case alike; two adopted files"
        " whose paths some engine takes for one; or one to add that is also named to be removed."
    ),
    Reason.LOCATION_NOT_ALLOWED: (
        "It sets a location property to a folder in which no table may be, or that meets the inbox."
    ),
    Reason.DATA_FILE_MISSING: (
        "It is not signed, and a file that it adds does not exist (where that is checked)."
    ),
    Reason.VECTOR_REPEATED: (
        "Two deletion vectors for one data file, or at one place of a Puffin file."
    ),
    Reason.FILTER_UNBOUND: (
        "A filter names a column that the table does not have, or compares it with a value of"
        " another type."
    ),
    Reason.EPOCH_CONTENT_DIFFERS: "The epoch has landed and stood for something else.",
    Reason.EPOCH_LANDED_UNPROVEN: (
        "The epoch has landed, or is so old that it may have, and nothing proves that it stood for"
        " the same."
    ),
    Reason.PRODUCER_FROZEN: (
        "Its producer is frozen: by an operator, by a rollback behind its last commit, or"
        " because its ledger entry cannot be read."
    ),
    Reason.CONFLICT: (
        "Others have changed what it rests on since its client read the table; its record names the"
        " conflict."
    ),
    Reason.TRANSACTION_INCOMPLETE: (
        "The request of another table of its transaction has not come in time, or cannot land; or"
        " another request is that of its own table. It has not landed."
    ),
    Reason.UNSUPPORTED: "Valid, but not supported by this version.",
    Reason.COMMIT_REJECTED: "The catalog refused the change.",
    Reason.PLAN_FAILED: "The committer failed on it: a bug.",
}

_RESEND = "Nothing can be read from it: discard it, and publish the micro-batch again."
_CLIENT = (
    "The client wrote a request that breaks the format: fix the client, then discard this one."
)
_REPLAY = "Make the table fit (or fix the writer), then `frazil quarantine replay` or `discard`."
_EPOCH = (
    "The producer's epoch counter was reset, or its checkpoint restored or cloned: compare both"
    " writes, then discard this one; or `frazil quarantine replay --force` it, to have both in the"
    " table."
)

_ADVICE: Mapping[Reason, str] = {
    Reason.REQUEST_TRUNCATED: _RESEND,
    Reason.REQUEST_MALFORMED: _CLIENT,
    Reason.JSON_KEY_REPEATED: _CLIENT,
    Reason.FILE_KEY_UNKNOWN: _CLIENT,
    Reason.REQUEST_VERSION_UNKNOWN: "Upgrade the committer, then replay it.",
    Reason.REQUEST_KEY_MISMATCH: _CLIENT,
    Reason.REQUEST_TOO_LARGE: "Publish the files in several epochs, then discard this one.",
    Reason.REQUEST_NOT_A_FILE: (
        "Find out who writes there, then discard it: that removes the entry, too (a folder only"
        " while it is empty)."
    ),
    Reason.ATTEMPT_MISMATCH: _CLIENT,
    Reason.HASH_MISMATCH: _RESEND,
    Reason.SIGNATURE_MISSING: (
        "Give its producer a key (setting `security.keys`) and publish again."
    ),
    Reason.SIGNATURE_INVALID: (
        "Its signer has another secret under this key id, or it was changed on the way: find out"
        " which, then discard it and publish again."
    ),
    Reason.SIGNATURE_KEY_UNKNOWN: (
        "Add the key to the committer's file of keys and replay; discard it if the key was revoked."
    ),
    Reason.SIGNATURE_KEY_NOT_ALLOWED: (
        "If its signer may do that, widen the key in the committer's file of keys and replay; else"
        " discard it."
    ),
    Reason.SIGNATURE_EXPIRED: (
        "It came into the inbox after the time that its signer set: discard it and publish again."
    ),
    Reason.UNSIGNED_OPERATION: (
        "Give its producer a key (setting `security.keys`) and publish again; or allow the"
        " operation by the setting `security.unsigned_operations` or the table property"
        " `frazil.unsigned-operations`, and replay."
    ),
    Reason.CATALOG_MISMATCH: "Point the producer at the inbox of its own catalog's committer.",
    Reason.TABLE_UNKNOWN: "Create or restore the table, then replay; or discard.",
    Reason.TABLE_UUID_MISMATCH: (
        "The table was dropped and created again: the files belong to the old one. Discard, or add"
        " them to the new table by hand."
    ),
    Reason.BRANCH_UNKNOWN: "Create the branch, then replay; or discard.",
    Reason.PRODUCER_ID_TOO_LONG: (
        "Give the producer a shorter id (or the branch a shorter name) and publish again, then"
        " discard this one."
    ),
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
    Reason.DELETE_FIELD_SET: _CLIENT,
    Reason.NEGATIVE_COUNT: _CLIENT,
    Reason.BOUND_MALFORMED: _CLIENT,
    Reason.COLUMN_REPEATED: _CLIENT,
    Reason.SPLIT_OFFSETS_MALFORMED: _CLIENT,
    Reason.PARTITION_TYPE_MISMATCH: _CLIENT,
    Reason.COUNT_MISMATCH: _CLIENT,
    Reason.PATH_NOT_ALLOWED: (
        "Write files below the table's data location and publish again; allow a folder of files"
        " that others wrote by the table property `frazil.adopt.locations`."
    ),
    Reason.FILE_NAME_TOO_LONG: "Give the files shorter names and publish again.",
    Reason.PATH_WITHOUT_ATTEMPT: (
        "Make the attempt the last uuid in every file name and publish again."
    ),
    Reason.PATH_REPEATED: "Give each data file of a request a name of its own and publish again.",
    Reason.LOCATION_NOT_ALLOWED: (
        "If tables may be there, allow the folder by the setting `security.locations` and replay;"
        " else discard it, and find out which client asked for it."
    ),
    Reason.DATA_FILE_MISSING: (
        "Its rows are in no file: discard it, find out which client published it, and publish the"
        " micro-batch again."
    ),
    Reason.VECTOR_REPEATED: _CLIENT,
    Reason.FILTER_UNBOUND: _REPLAY,
    Reason.EPOCH_CONTENT_DIFFERS: _EPOCH,
    Reason.EPOCH_LANDED_UNPROVEN: (
        "The epoch landed too long ago to compare, or to know. If these rows are in the table,"
        " discard it; if not, `frazil quarantine replay --force` it."
    ),
    Reason.PRODUCER_FROZEN: (
        "`frazil producer show` says why, and which epochs are concerned: bring the history back,"
        " or `frazil producer thaw`; then replay. `frazil quarantine replay --force` lands this one"
        " alone."
    ),
    Reason.CONFLICT: (
        "Run the job again on the current table, then discard this one: its files hold what the"
        " table was."
    ),
    Reason.TRANSACTION_INCOMPLETE: (
        "Find the transaction's other requests (not published, or in quarantine, too): correct what"
        " is wrong, and replay all of them; or discard all."
    ),
    Reason.UNSUPPORTED: "This version cannot commit that. Discard it, or upgrade and replay.",
    Reason.PLAN_FAILED: (
        "The committer itself failed on this request: keep it, report the log line of the time,"
        " upgrade, then replay."
    ),
    Reason.COMMIT_REJECTED: "The catalog refused the change itself: see its message, fix, replay.",
}
