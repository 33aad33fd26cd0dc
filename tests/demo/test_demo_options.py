"""Where a run puts itself, how it is cut into micro-batches, and what it leaves alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from committer.demo.demo_options import (
    DemoOptions,
    default_batches,
    default_home,
    make_home,
    queue_folder,
)
from committer.demo.demo_stack import open_stack
from committer.demo.demo_table import create_table, flights_table
from committer.errors import QueueUnavailableError, SettingsError
from committer.settings.service_settings import Settings

NOW_MS = 1_800_000_000_000


def options(home: Path) -> DemoOptions:
    url = "redis://nowhere.invalid:1"
    return DemoOptions(home=home, rows=10, streams=2, applications=1, batches=1, redis_url=url)


@pytest.mark.parametrize(
    ("rows", "streams", "batches"),
    [(336_776, 4, 15), (20_000, 4, 3), (1, 1, 3), (336_776, 16, 10), (10_000_000, 4, 15)],
)
def test_few_rows_make_fewer_micro_batches(rows: int, streams: int, batches: int) -> None:
    assert default_batches(rows, streams) == batches


def test_every_run_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    homes = set()
    for _ in range(3):
        home = default_home(NOW_MS)
        make_home(home)
        homes.add(home)
    assert len(homes) == 3
    assert {home.parent for home in homes} == {tmp_path / "demo-data"}


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("dear")
    with pytest.raises(SettingsError, match="is not empty: name a new folder"):
        make_home(tmp_path)
    with pytest.raises(SettingsError, match=r"--home: .*thesis.txt"):
        make_home(tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "dear"


def test_a_folder_too_deep_for_a_socket_has_its_queue_elsewhere(tmp_path: Path) -> None:
    assert queue_folder(Path("/short")) == Path("/short/queue")
    assert queue_folder(tmp_path / ("deep" * 40)) is None


async def test_settings_of_other_programs_are_left_out_and_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_CATALOG__URI", "postgresql://production/lake")
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    before = dict(os.environ)
    home = tmp_path / "home"
    async with open_stack(options(home)) as stack:
        assert "SPARK_HOME" not in os.environ
        assert stack.settings.catalog.uri == f"sqlite:///{home}/catalog.db"
        assert stack.settings.queue.url == "redis://nowhere.invalid:1"
    assert dict(os.environ) == before


async def test_a_queue_server_that_does_not_answer_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_QUEUE__URL", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(QueueUnavailableError, match=r"nobody\.sock"):
        await create_table(Settings(home=tmp_path), flights_table())
