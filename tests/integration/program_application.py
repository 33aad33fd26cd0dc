"""A Spark application that runs a random program, in a process that may be killed.

Run as a program it goes on where its journal ends. A step whose outcome it does not know it runs
again: a write under the same producer and epoch, a stream from its checkpoint, a change as it is.
It ends with 0 after the last step.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from tests.integration.program_journal import Journal
from tests.integration.program_model import SHARED_OWNER, Layout, Program, Row, Step
from tests.support.builders.jars import JAVA_OPTIONS

TABLE = "db.programs"
COLUMNS = "id long, owner int, day date, text string, amount long"
_CHANGED = f"{COLUMNS}, gone boolean, seq long"
_RETRIES = 50


@dataclass(frozen=True, slots=True)
class Place:
    """An application of a seed, and its folder: of its journal, and of its stream."""

    folder: Path
    seed: int
    application: int
    applications: int
    length: int

    @property
    def program(self) -> Program:
        layout = Layout.of(self.seed, self.applications)
        return Program(self.seed, self.application, layout, self.length)

    @property
    def journal(self) -> Journal:
        return Journal(self.folder / "journal.jsonl")

    @property
    def arguments(self) -> list[str]:
        numbers = (self.seed, self.application, self.applications, self.length)
        return [str(self.folder), *map(str, numbers)]


class WrongRowsError(Exception):
    """A read has other rows than the model."""


class Application:
    """The running application."""

    def __init__(self, spark: Any, place: Place) -> None:
        self._spark = spark
        self._place = place
        self._layout = place.program.layout
        self._journal = place.journal

    def run(self) -> None:
        """Run what is left of the program."""
        done = self._journal.done()
        for step in self._place.program.steps():
            if step.number >= done:
                self._run_step(step)

    def _run_step(self, step: Step) -> None:
        """Run a step until it has succeeded, again only if one of its workers was killed."""
        kills = -1
        while kills < (kills := len(self._journal.worker_kills())):
            self._journal.append(step.number, "begun", step.kind)
            try:
                told = getattr(self, f"_{step.kind}")(step)
            except WrongRowsError as error:
                self._journal.append(step.number, "wrong", str(error))
                raise
            except Exception as error:
                self._journal.append(step.number, "failed", f"{step.kind}: {error}"[:20_000])
                if len(self._journal.worker_kills()) == kills:
                    raise
            else:
                self._journal.append(step.number, "done", f"{step.kind}: {told}"[:2_000])
                return

    def _append(self, step: Step) -> None:
        self._write(step, "append", f"application-{self._place.application}", "committed")

    def _share(self, step: Step) -> None:
        self._write(step, "append", f"shared-{self._place.application}", "durable")

    def _overwrite(self, step: Step) -> None:
        options = {"overwrite-mode": "dynamic"}
        name = f"application-{self._place.application}"
        self._write(step, "overwrite", name, "committed", options)

    def _write(
        self,
        step: Step,
        mode: str,
        producer: str,
        wait: str,
        options: Mapping[str, str] | None = None,
    ) -> None:
        if not step.rows:
            return
        writer = self._frame(step.rows).write.format("frazil").mode(mode)
        named = {"producer": producer, "epoch": step.number, "wait": wait, **(options or {})}
        writer.options(**named).save(TABLE)

    def _delete(self, step: Step) -> object:
        from frazil.spark import delete_from

        assert step.condition
        return delete_from(TABLE, step.condition.sql, spark=self._spark, retries=_RETRIES)

    def _update(self, step: Step) -> object:
        from frazil.spark import update

        assert step.condition
        values = {"text": f"'{step.text}'", "amount": str(step.amount)}
        return update(TABLE, values, step.condition.sql, spark=self._spark, retries=_RETRIES)

    def _merge(self, step: Step) -> object:
        from frazil.spark import merge_into

        source = self._frame(step.rows, step.gone)
        # Also a condition that Iceberg cannot say, for which all files are candidates.
        on = "target.id = source.id"
        if step.chance < 0.7:
            on += f" and target.owner = {self._place.application}"
        merge = (
            merge_into(TABLE, source, on, retries=_RETRIES)
            .when_matched_delete("source.gone")
            .when_matched_update_all()
            .when_not_matched_insert_all("not source.gone")
        )
        if step.condition is not None:
            low, high = step.condition.amounts or (0, 0)
            merge = merge.when_not_matched_by_source_delete(
                f"target.owner = {step.condition.owner} and target.amount between {low} and {high}"
            )
        return merge.execute()

    def _upsert(self, step: Step) -> None:
        from frazil.spark import upsert_stream

        source = self._place.folder / "source"
        self._add_input(source, step)
        rows = self._spark.readStream.schema(_CHANGED).json(str(source))
        query = (
            upsert_stream(
                rows,
                self._layout.upsert_keys,
                delete_column="gone",
                sequence_column="seq",
            )
            .option("wait", "committed")
            .option("checkpointLocation", str(self._place.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(TABLE)
        )
        query.awaitTermination()

    def _add_input(self, source: Path, step: Step) -> None:
        """Add a file of changes, the last one of each key last by its sequence only."""
        source.mkdir(exist_ok=True)
        names = ("id", "owner", "day", "text", "amount", "gone", "seq")
        last = [(*row, row[0] in step.gone, 2) for row in step.rows]
        before = [(*row[:3], "early", 1, row[0] % 2 == 0, 1) for row in step.rows]
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in [*last, *before]]
        hidden = source / f".{step.number:04d}.json"
        hidden.write_text("\n".join(lines) + "\n")
        # A step that is run again leaves the file that Spark may have seen.
        if not (source / hidden.name[1:]).exists():
            hidden.rename(source / hidden.name[1:])

    def _compact(self, step: Step) -> object:
        from frazil.spark import (
            convert_equality_deletes,
            rewrite_data_files,
            rewrite_position_deletes,
        )

        own = f"owner = {self._place.application}" if step.chance < 0.5 else None
        options = {"partial-progress.enabled": "true", "min-input-files": "2"}
        if step.chance < 0.75:
            options["rewrite-all"] = "true"
        sorted_ = {"strategy": "sort", "sort_order": "amount desc"} if step.chance < 0.3 else {}
        told: list[object] = []
        if step.chance < 0.6:
            told.append(convert_equality_deletes(self._spark, TABLE))
        told.append(rewrite_data_files(self._spark, TABLE, where=own, options=options, **sorted_))
        if step.chance > 0.4:
            told.append(rewrite_position_deletes(self._spark, TABLE))
        return told

    def _read(self, step: Step) -> None:
        own = f"owner = {self._place.application}"
        reader = self._spark.read.format("frazil")
        rows = (reader.option("filter", own) if step.chance < 0.5 else reader).load(TABLE)
        columns = ("id", "owner", "day", "text", "amount")
        found = sorted(
            (row[0], row[1], str(row[2]), row[3], row[4])
            for row in rows.where(own).select(*columns).collect()
        )
        if tuple(found) != step.rows_after:
            raise WrongRowsError(different_rows(list(step.rows_after), found))

    def _frame(self, rows: tuple[Row, ...], gone: frozenset[int] | None = None) -> Any:
        values = [(id_, owner, date.fromisoformat(at), *rest) for id_, owner, at, *rest in rows]
        if gone is None:
            return self._spark.createDataFrame(values, COLUMNS)
        changed = [(*row, row[0] in gone) for row in values]
        return self._spark.createDataFrame(changed, f"{COLUMNS}, gone boolean")


def different_rows(expected: list[Row], found: list[Row]) -> str:
    """Say which rows are too few and too many."""
    lost = [row for row in expected if row not in found]
    extra = [row for row in found if row not in expected]
    doubled = sorted({row for row in found if found.count(row) > expected.count(row)})
    return f"not found: {lost}; found, but not the model's: {extra}; too often: {doubled}"


def expected_rows(programs: list[Program]) -> list[Row]:
    """Return the rows that programs leave together, in order."""
    ended = [program.finished() for program in programs]
    own = [row for program in ended for row in program.rows.values()]
    shared = [row for program in ended for row in program.shared]
    assert all(row[1] == SHARED_OWNER for row in shared)
    return sorted([*own, *shared])


def _session(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    from frazil.spark import configure

    # A task may fail, as on a cluster: its Python worker is killed.
    builder = configure(SparkSession.builder.master("local[1, 4]").appName(folder.name))
    confs = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }
    for key, value in confs.items():
        builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(folder: str, *numbers: str) -> None:
    seed, application, applications, length = map(int, numbers)
    place = Place(Path(folder), seed, application, applications, length)
    Application(_session(place.folder), place).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
