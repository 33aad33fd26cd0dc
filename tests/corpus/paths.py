"""Paths of data files in every spelling that is not the table's own, or that leaves the table."""

from __future__ import annotations

from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from tests.corpus.hostile import Hostile, Sent, short
from tests.support.builders.bad_requests import entry, file_of, hand_over
from tests.support.builders.refused_paths import REFUSED
from tests.support.builders.request_builders import build_line, seal


def _at(path: str, reason: Reason = Reason.PATH_NOT_ALLOWED) -> Hostile:
    """Return a case with this path: `{t}` is the table's location, `{a}` the attempt."""

    def send(table: LoadedTable, producer: str) -> Sent:
        line = build_line(table, producer=producer)
        filled = path.replace("{t}", table.metadata.location).replace("{a}", str(line.attempt))
        file = file_of(table, line, file_path=filled)
        return Sent.of(seal(line, [hand_over(table, entry(file))]))

    return Hostile(f"path {short(path)}", reason, send)


def _on_this_table(path: str) -> str:
    """Turn a spelling for `s3://lake/db/flights` into one for the table of these tests."""
    here = path.replace("s3://lake/db/flights", "{t}").replace("lake", "warehouse")
    return here.replace("s3", "memory").replace("S3", "MEMORY").replace("x.parquet", "{a}.parquet")


ELSEWHERE = (
    "{t}/../../../{a}.parquet",
    "{t}/data/....//{a}.parquet",
    "{t}/data/..;/{a}.parquet/..",
    "{t}/data/%2e%2e%2f%2e%2e%2f%2e%2e%2f{a}.parquet",
    "{t}/data/%252e%252e/../{a}.parquet",
    "{t}/data/..%5c..%5c..%5c{a}.parquet",
    "{t}/%2e./%2e./{a}.parquet",
    "{t}%2f..%2f{a}.parquet",
    "{t}%2fdata%2f{a}.parquet",
    "{t}.{a}.parquet",
    "{t}@evil/{a}.parquet",
    "{t}:80/{a}.parquet",
    "{t}%00/{a}.parquet",
    "memory:warehouse/db/flights/data/{a}.parquet",
    "memory:////warehouse/db/flights/data/{a}.parquet",
    "memory://./warehouse/db/flights/data/{a}.parquet",
    "memory://warehouse:0/db/flights/data/{a}.parquet",
    "memory://warehouse./db/flights/data/{a}.parquet",
    "memory://ｗarehouse/db/flights/data/{a}.parquet",
    "memory://warehouse\uff0fdb/flights/data/{a}.parquet",
    "memory://warehouse/db/fl\u200bights/data/{a}.parquet",
    "memory://warehouse/db/fligh\u0442s/data/{a}.parquet",
    "\ufeffmemory://warehouse/db/flights/data/{a}.parquet",
    "memory://requests/inbox/{a}",
    "memory://requests/quarantine/{a}",
    "http://169.254.169.254/latest/meta-data/{a}",
    "http://localhost:6379/{a}",
    "hdfs://namenode/db/flights/{a}.parquet",
    "ftp://warehouse/db/flights/{a}.parquet",
    "data:text/plain,{a}",
    "jdbc:memory://warehouse/db/flights/{a}",
    "file:{t}/{a}.parquet",
    "C:\\warehouse\\{a}.parquet",
    "\\\\server\\share\\{a}.parquet",
    "~/{a}.parquet",
    "$HOME/{a}.parquet",
    "data/{a}.parquet",
    "./data/{a}.parquet",
)

UNPRINTABLE = (
    "{t}/data/{a}.parquet\r\n",
    "{t}/data/{a}\x1b[2J.parquet",
    "{t}/data/{a}\x85.parquet",
    "{t}/data/{a}\x9b31m.parquet",
    "{t}/data/{a}\u2028.parquet",
    "{t}/data/{a}\u202egnp.parquet",
    "{t}/data/\u200b{a}.parquet",
    "{t}/data/\ufeff{a}.parquet",
    "{t}/data/\U000e0041/{a}.parquet",
)

# A reader that decodes or normalizes them sees another name, which may be another request's.
OTHER_NAMES = (
    "{t}/data/%2e{a}.parquet",
    "{t}/data/{a}%2eparquet",
    "{t}/data/00000-%{a}.parquet",
    "{t}/data/00000-0000000-%30{a}.parquet",
    "{t}/data/x%2f{a}.parquet",
    "{t}/data/{a}\u0327.parquet",
    "{t}/data/\u212b-{a}.parquet",
    "{t}/data/fl\xfcge-{a}.parquet",
)

# Files that a client may only read; an expiry would delete them with the snapshot's other files.
METADATA = (
    "{t}/metadata/{a}.parquet",
    "{t}/metadata/00003-{a}.metadata.json",
    "{t}/metadata/snap-1-1-{a}.avro",
    "{t}/metadata/deep/{a}.parquet",
)

WITHOUT_ATTEMPT = (
    "{t}/data/x.parquet",
    "{t}/{a}/x.parquet",
    "{t}/data/{a}/",
    "{t}/data/x={a}/00000.parquet",
    "{t}/data/00000-00000000-0000-0000-0000-000000000000.parquet",
    # Two attempts: the file is the other's.
    "{t}/data/{a}-00000000-0000-0000-0000-000000000000.parquet",
    "{t}/data/{a}-ABCDEF00-0000-0000-0000-000000000000.parquet",
    "{t}/data/{a}-0000-0000-0000-000000000000.parquet",
    "{t}/data/{a}00000000-0000-0000-0000-000000000000",
)

PATHS: tuple[Hostile, ...] = (
    *(_at(_on_this_table(path)) for path in REFUSED if path),
    *map(_at, ELSEWHERE),
    *map(_at, UNPRINTABLE),
    *map(_at, OTHER_NAMES),
    *map(_at, METADATA),
    *(
        _at(path, Reason.PATH_NOT_ALLOWED if path.endswith("/") else Reason.PATH_WITHOUT_ATTEMPT)
        for path in WITHOUT_ATTEMPT
    ),
)
