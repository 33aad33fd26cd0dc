"""The walk of each page that a new user reads, with the wrong turns that users take there."""

from __future__ import annotations

from tests.first_hour.steps import (
    Interrupt,
    LeftOut,
    Run,
    Save,
    Sql,
    Start,
    Step,
    Type,
    Walk,
)
from tests.first_hour.wrong_turns import IN_A_NEW_HOME, WHILE_IT_SERVES

_HOW_TO = "docs/how-to"
_BY_HAND = f"{_HOW_TO}/publish-by-hand.md"
_FROM_SPARK = f"{_HOW_TO}/publish-from-spark.md"
_STARTED = "service.started"
_FLIGHTS = (
    'frazil table create db.flights --schema "id long not null, carrier string, at timestamptz"'
    ' --partition "day(at)"'
)
# Rows never end in the pages' source: one micro-batch with some is enough.
_ONE_BATCH = """
import time
for query in spark.streams.active:
    while not any(one["numInputRows"] for one in query.recentProgress):
        time.sleep(0.2)
    query.stop()
"""
_QUIET_SPARK = (
    "import os\nos.environ['PYSPARK_SUBMIT_ARGS'] = '--conf spark.ui.enabled=false pyspark-shell'\n"
)

# All that was published has left the inbox: it is in the table, or in quarantine.
_SETTLED = Type(
    command='test -z "$(find .frazil/requests/inbox -type f)" && echo settled || echo waiting',
    until="settled",
    shown="none",
)


def _each_row_once(*beside: int) -> Type:
    """Check a stream's rows, and those of writes beside it."""
    words = ["python -m tests.first_hour.landed_rows .frazil/catalog.db db.flights", *beside]
    return Type(command=" ".join(map(str, words)))


# One block for each commit of a stream, however many there was time for: the first makes the table
# as large as it is itself, and none is empty.
_COMMIT = r"committed  <time>\nsnapshot id  <id>\n"
_COMMITS = {
    _COMMIT
    + r"seq  1\noperation  append\nfiles  \+([1-9]\d*) = \1\nrecords  \+([1-9]\d*) = \2\n"
    + rf"(?:\n{_COMMIT}parent  <id>\nseq  \d+\noperation  append\n"
    + r"files  \+[1-9]\d* = \d+\nrecords  \+[1-9]\d* = \d+\n)*"
    + r"refs  main$": "<a block for each commit, the last with `refs  main`>",
}


def _filled(table: str = "db.flights") -> list[Step]:
    """Create a table with three rows, published by hand, and landed."""
    return [
        Type(command=_FLIGHTS.replace("db.flights", table), shown="none"),
        Run(page=_BY_HAND, block=2, put=_named(table), shown="none"),
        Start(command="frazil serve", ready=_STARTED),
        Type(
            command=f"frazil table files {table} --json | wc -l",
            until="1",
            shown="none",
        ),
        Interrupt(),
    ]


def _named(table: str) -> dict[str, str]:
    name = table.partition(".")[2]
    return {'"db.events"': f'"{table}"', '"name": "events"': f'"name": "{name}"'}


README = Walk(
    "README.md",
    [
        LeftOut(block=1, reason="a picture"),
        *IN_A_NEW_HOME,
        Run(block=2, in_clone=True, shown="none"),
        Type(command="make demo ROWS=20000 STREAMS=8", in_clone=True, shown="none"),
        Start(block=3, ready=_STARTED, in_clone=True),
        *WHILE_IT_SERVES,
        Run(
            block=4,
            put={"/tmp/flights-checkpoint": "{home}/checkpoint"},
            before=_QUIET_SPARK,
            after=_ONE_BATCH,
            shown="none",
        ),
        _SETTLED,
        Type(command="frazil table snapshots db.flights", terminal=True, varying=_COMMITS),
        _each_row_once(),
        Interrupt(),
    ],
)

RUN_THE_COMMITTER = Walk(
    f"{_HOW_TO}/run-the-committer.md",
    [
        Start(block=1, ready=_STARTED),
        Interrupt(),
        Save(
            block=2,
            file="frazil.toml",
            put={"/srv": "{home}/srv", "redis://queue.internal:6379/0": "none"},
        ),
        Start(command="FRAZIL_CONFIG=frazil.toml frazil serve", ready=_STARTED),
        Interrupt(),
        LeftOut(block=3, reason="DynamoDB and S3: tests/integration/test_aws_profile.py"),
        LeftOut(block=4, reason="DynamoDB and S3: tests/integration/test_aws_profile.py"),
        LeftOut(block=5, reason="PyIceberg's file: tests/cli/test_named_catalog.py"),
        *_filled(),
        Sql(block=6, put={"db.flights": "frazil.db.flights"}),
    ],
)

PUBLISH_BY_HAND = Walk(
    _BY_HAND,
    [
        Run(block=1),
        Run(block=2),
        Type(command="frazil inspect $(find .frazil/requests/inbox -type f)"),
        Start(command="frazil serve", ready=_STARTED),
        Type(command="frazil table files db.events --json | wc -l", until="1"),
        Interrupt(),
        LeftOut(block=3, reason="a part of a line: tests/workers publish manifests"),
        *(
            LeftOut(block=block, reason="a part of a line: tests/test_snippets.py parses it")
            for block in range(4, 14)
        ),
        LeftOut(block=14, reason="a server of one's own: tests/queue rings the doorbell"),
    ],
)

CHANGE_SEVERAL_TABLES = Walk(
    f"{_HOW_TO}/change-several-tables.md",
    [
        Run(block=1),
        Run(block=2),
        Start(command="frazil serve", ready=_STARTED),
        *(
            Type(command=f"frazil table files db.{name} --json | wc -l", until="1", shown="none")
            for name in ("orders", "items")
        ),
        *(
            Type(command=f"frazil table snapshots db.{name} --json | grep -c frazil.transaction")
            for name in ("orders", "items")
        ),
        Interrupt(),
        Run(block=3),
    ],
)

PUBLISH_FROM_SPARK = Walk(
    _FROM_SPARK,
    [
        Type(command=_FLIGHTS, shown="none"),
        Start(command="frazil serve", ready=_STARTED),
        Run(
            block=1,
            put={"/checkpoints/flights": "{home}/checkpoint"},
            before=_QUIET_SPARK,
            after=_ONE_BATCH,
            shown="none",
        ),
        LeftOut(block=2, reason="tests/integration/changes/test_distribute.py writes so"),
        LeftOut(block=3, reason="DynamoDB and S3: tests/integration/test_aws_profile.py"),
        LeftOut(block=4, reason="DynamoDB and S3: tests/integration/test_aws_profile.py"),
        Run(
            block=5,
            put={"/checkpoints/flights": "{home}/checkpoint-of-foreach"},
            before=_QUIET_SPARK
            + "from pyspark.sql import SparkSession\n"
            + "from frazil.spark import configure\n"
            + 'spark = configure(SparkSession.builder.master("local[1]")).getOrCreate()\n'
            + "events = spark.readStream.format('rate').load().selectExpr(\n"
            + "    'value AS id', \"'AA' AS carrier\", 'timestamp AS at')\n",
            after=_ONE_BATCH,
            shown="none",
        ),
        Run(
            block=6,
            language="python",
            put={
                "(id BIGINT, carrier STRING)": "(id BIGINT, carrier STRING, at TIMESTAMP)",
                "SELECT …": "SELECT 7L, 'UA', current_timestamp()",
            },
            before=_QUIET_SPARK
            + "from pyspark.sql import SparkSession\n"
            + "from frazil.spark import configure\n"
            + 'spark = configure(SparkSession.builder.master("local[1]")).getOrCreate()\n'
            + 'for statement in """\n',
            after='""".split(";"):\n    _ = statement.strip() and spark.sql(statement)\n',
            shown="none",
        ),
        _SETTLED,
        Type(command="frazil table snapshots db.flights", terminal=True, varying=_COMMITS),
        _each_row_once(7),
        Interrupt(),
    ],
)

READ_THE_TABLE = Walk(
    f"{_HOW_TO}/read-the-table.md",
    [
        *_filled(),
        Run(block=1, put={"/home/me": "{home}"}),
        Run(
            block=2,
            put={
                '"/home/me/.frazil/warehouse/db/flights/metadata/00012-….metadata.json"': (
                    "sorted(Path('{home}').glob('.frazil/warehouse/db/flights/metadata/*.json'))[-1]"
                ),
                'connection.execute("INSTALL iceberg; LOAD iceberg")': (
                    "[connection.execute(f\"LOAD '{extension_path(name)}'\")"
                    " for name in ('avro', 'iceberg')]"
                ),
            },
            before="from pathlib import Path\n"
            "from committer.demo.demo_readers import extension_path\n",
        ),
        LeftOut(block=3, reason="settings, which block 4 is run with"),
        Sql(block=4, put={"SELECT …": "SELECT 8L, 'ZZ', current_timestamp()"}),
    ],
)

_SPARK = (
    _QUIET_SPARK
    + "from pyspark.sql import SparkSession\n"
    + "from frazil.spark import configure\n"
    + 'spark = configure(SparkSession.builder.master("local[1]")).getOrCreate()\n'
)

READ_FROM_SPARK = Walk(
    f"{_HOW_TO}/read-from-spark.md",
    [
        *_filled(),
        Run(block=1, before=_QUIET_SPARK, shown="stdout"),
        Run(block=2, before=_SPARK, shown="stdout"),
        Run(block=3, before=_SPARK, shown="none"),
    ],
)

STREAM_FROM_A_TABLE = Walk(
    f"{_HOW_TO}/stream-from-a-table.md",
    [
        *_filled(),
        Run(
            block=1,
            put={"/checkpoints/flights-to-console": "{home}/checkpoint"},
            before=_QUIET_SPARK,
            after=_ONE_BATCH,
            shown="stdout",
        ),
    ],
)


def _rows(table: str) -> Type:
    """Show the rows of a table."""
    program = f"import frazil; print(*frazil.load_table('{table}').scan().to_arrow().to_pylist())"
    return Type(command=f'python -c "{program}"')


_AA = """'{"id": 1, "carrier": "AA"}'"""

OVERWRITE_FROM_SPARK = Walk(
    f"{_HOW_TO}/overwrite-from-spark.md",
    [
        Type(
            command='frazil table create db.flights --schema "id long, carrier string, day date"'
            " --partition day",
            shown="none",
        ),
        Type(
            command='frazil table create db.counts --schema "carrier string, count long"',
            shown="none",
        ),
        Start(command="frazil serve", ready=_STARTED),
        Run(block=1, before=_QUIET_SPARK, shown="none"),
        _rows("db.flights"),
        Run(
            block=2,
            before=_SPARK
            + "day = spark.sql(\"SELECT 8L id, 'UA' carrier, DATE'2026-11-21' day\")\n",
            shown="none",
        ),
        _rows("db.flights"),
        Type(command=f"mkdir data && echo {_AA} > data/1.json", shown="none"),
        Run(
            block=3,
            put={"/data/flights": "{home}/data", "/checkpoints/counts": "{home}/checkpoint"},
            before=_SPARK,
            after=_ONE_BATCH,
            shown="none",
        ),
        _SETTLED,
        _rows("db.counts"),
        Interrupt(),
    ],
)

_CORRECTIONS = (
    """'{"id": 1, "day": "2026-11-21", "delay": 5}'""",
    """'{"id": 2, "day": "2026-11-21", "canceled": true}'""",
    """'{"id": 3, "day": "2026-11-21", "delay": 9}'""",
)
_BEFORE_THE_CHANGES = """
spark.sql(
    "SELECT id, carrier, day, 0 AS delay, named_struct('gate', 'B2') AS place FROM VALUES"
    " (1L, 'UA', DATE'2026-11-21'), (2L, 'UA', DATE'2026-11-21'), (7L, 'AA', DATE'2026-11-20'),"
    " (9L, 'ZZ', DATE'2025-11-20') AS flights (id, carrier, day)"
).write.format("frazil").mode("append").option("wait", "committed").save("db.flights")
"""

DELETE_UPDATE_MERGE_FROM_SPARK = Walk(
    f"{_HOW_TO}/delete-update-merge-from-spark.md",
    [
        Type(
            command='frazil table create db.flights --schema "id long, carrier string, day date,'
            ' delay int, place struct<gate: string>" --partition day',
            shown="none",
        ),
        Type(
            command=f"mkdir data && printf '%s\\n' {' '.join(_CORRECTIONS)} > data/1.json",
            shown="none",
        ),
        Start(command="frazil serve", ready=_STARTED),
        Run(
            block=1,
            put={"/data/corrections": "{home}/data"},
            before=_SPARK + _BEFORE_THE_CHANGES,
            shown="none",
        ),
        _rows("db.flights"),
        Interrupt(),
        LeftOut(block=2, reason="tests/integration/changes/test_schema_evolution.py merges so"),
    ],
)

_CHANGES = (
    """'{"id": 1, "name": "late", "op": "u", "at": "2026-01-01T00:00:00Z"}'""",
    """'{"id": 1, "name": "Ada", "op": "u", "at": "2026-01-02T00:00:00Z"}'""",
    """'{"id": 2, "op": "d", "at": "2026-01-02T00:00:00Z"}'""",
)
_READ_CHANGES = (
    "columns = 'id LONG, name STRING, op STRING, at TIMESTAMP'\n"
    "changes = spark.readStream.schema(columns).json('data')\n"
)

UPSERT_A_STREAM = Walk(
    f"{_HOW_TO}/upsert-a-stream.md",
    [
        Type(
            command='frazil table create db.customers --schema "id long not null, name string"',
            shown="none",
        ),
        Type(
            command=f"mkdir data && printf '%s\\n' {' '.join(_CHANGES)} > data/1.json", shown="none"
        ),
        Start(command="frazil serve", ready=_STARTED),
        Run(
            block=1,
            put={"/data/changes": "{home}/data", "/checkpoints/customers": "{home}/checkpoint"},
            before=_QUIET_SPARK,
            after=_ONE_BATCH,
            shown="none",
        ),
        _SETTLED,
        _rows("db.customers"),
        Run(
            block=2,
            put={"/checkpoints/by_position": "{home}/checkpoint-by-position"},
            before=_SPARK + _READ_CHANGES,
            after=_ONE_BATCH,
            shown="none",
        ),
        _SETTLED,
        _rows("db.customers"),
        Run(
            block=3,
            put={"/checkpoints/by_batch": "{home}/checkpoint-of-foreach"},
            before=_SPARK + _READ_CHANGES,
            after=_ONE_BATCH,
            shown="none",
        ),
        _SETTLED,
        _rows("db.customers"),
        Interrupt(),
    ],
)

# The first word of the last line: the start of its attempt.
_QUARANTINED = "$(frazil quarantine list | tail -n 1 | cut -d ' ' -f 1)"

HANDLE_QUARANTINE = Walk(
    f"{_HOW_TO}/handle-quarantine.md",
    [
        Type(command=_FLIGHTS, shown="none"),
        Run(
            page=_BY_HAND,
            block=2,
            put=_named("db.flights") | {'"partition": ["2026-03-01"]': '"partition": ["spring"]'},
            shown="none",
        ),
        Start(command="frazil serve", ready=_STARTED),
        Type(command="frazil quarantine list --json | wc -l", until="1", shown="none"),
        Run(block=1, put={"show 3f2a": f"show {_QUARANTINED}"}),
        Type(command="frazil quarantine list", terminal=True),
        Type(command="frazil quarantine show nonsense", exit_code=1),
        Type(
            command="frazil quarantine list --code nonsense",
            exit_code=2,
            varying={r"there are request_truncated, [a-z_, ]+": "there are <all reason codes>"},
        ),
        Type(command=f"frazil quarantine discard {_QUARANTINED} --yes"),
        Interrupt(),
    ],
)

_COPY = {
    "copy/metadata/00007-….metadata.json": "$(ls copy/metadata/*.json | tail -n 1)",
    "s3://bucket/flights": "file://{home}/.frazil/warehouse/db/flights",
}
_AUDIT_BRANCH = (
    'python -c "from pyiceberg.catalog.sql import SqlCatalog;'
    " table = SqlCatalog('frazil', uri='sqlite:///{home}/.frazil/catalog.db')"
    ".load_table('db.flights');"
    " table.manage_snapshots()"
    ".create_branch(table.current_snapshot().snapshot_id, 'audit').commit()\""
)

INSPECT_A_TABLE = Walk(
    f"{_HOW_TO}/inspect-a-table.md",
    [
        *_filled(),
        Type(command=_AUDIT_BRANCH, shown="none"),
        Run(block=1, put={"2026-05-01T12:00:00Z": "2126-05-01T12:00:00Z"}),
        Type(command="cp -r .frazil/warehouse/db/flights copy", shown="none"),
        Run(block=2, put=_COPY),
    ],
)

PLAN_A_SCAN = Walk(
    f"{_HOW_TO}/plan-a-scan.md",
    [
        *_filled(),
        Type(command=_AUDIT_BRANCH, shown="none"),
        Type(command="cp -r .frazil/warehouse/db/flights copy", shown="none"),
        Run(block=1, put=_COPY | {"(delay > 30 or delay is null)": "(id > 30 or at is null)"}),
        Run(block=2),
    ],
)

READ_FROM_PYTHON = Walk(f"{_HOW_TO}/read-from-python.md", [*_filled(), Run(block=1)])

SIGN_REQUESTS = Walk(
    f"{_HOW_TO}/sign-requests.md",
    [
        Run(block=1),
        LeftOut(block=2, reason="what block 1 wrote"),
        LeftOut(
            block=3,
            reason="a part of publish-by-hand.md's client: both are run in tests/test_docs.py",
        ),
        *_filled(),
        Sql(block=4, put={"db.flights": "frazil.db.flights"}),
    ],
)

CHANGE_A_SCHEMA = Walk(
    f"{_HOW_TO}/change-a-schema.md",
    [
        *_filled(),
        Start(command="frazil serve", ready=_STARTED),
        Run(block=1),
        Interrupt(),
        Sql(block=2),
        LeftOut(block=3, reason="Iceberg Java's message, which comes by chance"),
        Sql(block=4),
        Type(command="frazil table schema db.flights"),
    ],
)

ADD_FILES = Walk(
    f"{_HOW_TO}/add-files.md",
    [
        Run(block=1),
        Run(block=2),
        Start(command="frazil serve", ready=_STARTED),
        Run(block=3),
        Type(command="frazil table add-files db.trips old", exit_code=1),
        Interrupt(),
    ],
)

BRANCHES_AND_TAGS = Walk(
    f"{_HOW_TO}/branches-and-tags.md",
    [
        *_filled(),
        Start(command="frazil serve", ready=_STARTED),
        Run(block=1),
        Interrupt(),
    ],
)

WRITE_AUDIT_PUBLISH = Walk(
    f"{_HOW_TO}/write-audit-publish.md",
    [
        *_filled(),
        Start(command="frazil serve", ready=_STARTED),
        Run(block=1),
        Interrupt(),
        LeftOut(block=2, reason="a part of a line: tests/service/table/test_staging.py stages"),
        LeftOut(block=3, reason="it needs what block 2 stages"),
        LeftOut(block=4, reason="tests/integration/changes/test_wap.py writes so"),
    ],
)

TUNE = Walk(f"{_HOW_TO}/tune.md", [LeftOut(block=1, reason="a picture")])

MAINTAIN_TABLES = Walk(
    f"{_HOW_TO}/maintain-tables.md",
    [
        *_filled(),
        Run(block=1),
        Run(block=2),
        LeftOut(block=3, reason="it waits for a yes: tests/cli/test_table_purge.py"),
    ],
)

REMOVE_ORPHANS = Walk(
    f"{_HOW_TO}/remove-orphans.md",
    [
        *_filled(),
        Type(
            command="touch -d '4 days ago' .frazil/warehouse/db/flights/data/left-over.parquet",
            shown="none",
        ),
        Run(block=1),
        Type(command="frazil table orphans db.flights --older-than 1h --remove --yes", exit_code=2),
    ],
)

SHARE_WITH_OTHER_ENGINES = Walk(
    f"{_HOW_TO}/share-with-other-engines.md", [*_filled(), Run(block=1)]
)

TRY_HOSTILE_REQUESTS = Walk(
    f"{_HOW_TO}/try-hostile-requests.md",
    [LeftOut(block=1, reason="minutes of its own: tests/corpus plays a part of it")],
)

RUN_ON_AWS = Walk(
    f"{_HOW_TO}/run-on-aws.md",
    [
        Run(
            block=1,
            in_clone=True,
            put={"mkdir -p aws": "mkdir -p {home}/aws", '"aws/$': '"{home}/aws/$'},
        ),
        *(
            LeftOut(block=number, reason="needs an AWS account; tests/deploy checks the files")
            for number in range(2, 8)
        ),
    ],
    {"BUCKET": "example-lake", "AWS_REGION": "eu-central-1", "ACCOUNT": "123456789012"},
)

SPARK_ELSEWHERE = Walk(
    f"{_HOW_TO}/spark-elsewhere.md",
    [LeftOut(block=1, reason="needs a server: tests/integration/test_spark_connect.py")],
)

RUN_ON_KUBERNETES = Walk(
    f"{_HOW_TO}/run-on-kubernetes.md",
    [
        LeftOut(block=number, reason="needs a cluster; tests/deploy checks the files")
        for number in range(1, 5)
    ],
)

RUN_THE_BENCHMARK = Walk(
    f"{_HOW_TO}/run-the-benchmark.md",
    [
        LeftOut(block=number, reason="minutes to hours: programs of their own")
        for number in range(1, 7)
    ],
)

CHOOSE_A_CATALOG = Walk(
    f"{_HOW_TO}/choose-a-catalog.md",
    [LeftOut(block=1, reason="needs a second catalog: tests/cli/test_catalog_check.py")],
)

MIGRATE_A_TABLE = Walk(
    f"{_HOW_TO}/migrate-a-table.md",
    [LeftOut(block=1, reason="needs a second catalog: tests/cli/test_table_migrate.py")],
)

USE_TRINO = Walk(
    f"{_HOW_TO}/use-trino.md",
    [
        LeftOut(block=number, reason="Trino's settings, with which tests/trino starts it")
        for number in range(1, 5)
    ],
)

_SIX_FILES = """
for number in range(6):
    spark.sql(
        f"SELECT {number}L AS id, 'AA' AS carrier, TIMESTAMP'2026-11-21 00:00:00' AS at,"
        " DATE'2026-11-21' AS day"
    ).write.format("frazil").mode("append").option("wait", "committed").save("db.events")
"""

COMPACT_FROM_SPARK = Walk(
    f"{_HOW_TO}/compact-from-spark.md",
    [
        Type(
            command='frazil table create db.events --schema "id long, carrier string,'
            ' at timestamptz, day date" --sort-order at',
            shown="none",
        ),
        Start(command="frazil serve", ready=_STARTED),
        Run(block=1, before=_SPARK + _SIX_FILES, shown="stdout"),
        Run(block=2, before=_SPARK, shown="none"),
        _rows("db.events"),
        Run(block=3, before=_SPARK, shown="stdout"),
        LeftOut(block=4, reason="no end: tests/integration/changes/test_compaction.py sets one"),
        LeftOut(block=5, reason="no end: the same job as a program of its own"),
        Interrupt(),
    ],
)

CREATE_A_TABLE_FROM_SPARK = Walk(
    f"{_HOW_TO}/create-a-table-from-spark.md",
    [
        LeftOut(block=1, reason="tests/workers/creation/test_spark_table.py creates tables so"),
        LeftOut(block=2, reason="tests/integration/test_spark_writer.py writes with the options"),
    ],
)

WALKS = (
    README,
    ADD_FILES,
    BRANCHES_AND_TAGS,
    CHANGE_A_SCHEMA,
    CHANGE_SEVERAL_TABLES,
    CHOOSE_A_CATALOG,
    COMPACT_FROM_SPARK,
    CREATE_A_TABLE_FROM_SPARK,
    DELETE_UPDATE_MERGE_FROM_SPARK,
    HANDLE_QUARANTINE,
    INSPECT_A_TABLE,
    MAINTAIN_TABLES,
    MIGRATE_A_TABLE,
    OVERWRITE_FROM_SPARK,
    PLAN_A_SCAN,
    PUBLISH_BY_HAND,
    PUBLISH_FROM_SPARK,
    READ_FROM_PYTHON,
    READ_FROM_SPARK,
    READ_THE_TABLE,
    REMOVE_ORPHANS,
    RUN_ON_AWS,
    RUN_ON_KUBERNETES,
    SPARK_ELSEWHERE,
    RUN_THE_BENCHMARK,
    RUN_THE_COMMITTER,
    SHARE_WITH_OTHER_ENGINES,
    SIGN_REQUESTS,
    STREAM_FROM_A_TABLE,
    TRY_HOSTILE_REQUESTS,
    TUNE,
    UPSERT_A_STREAM,
    USE_TRINO,
    WRITE_AUDIT_PUBLISH,
)
