from __future__ import annotations

import gc
import os
import zipfile
import zipimport
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from workers.spark import worker_process
from workers.spark.worker_process import begin_call, patch_zipimporter


@pytest.fixture(autouse=True)
def unpatched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the version to PySpark 4.1, whichever is installed, and undo the patch afterwards."""
    original = zipimport.zipimporter.invalidate_caches
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    yield
    setattr(zipimport.zipimporter, "invalidate_caches", original)  # noqa: B010


def write_archive(path: Path, *modules: str, modified_s: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for module in modules:
            archive.writestr(f"{module}.py", "")
    os.utime(path, (modified_s, modified_s))


def test_an_archive_that_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    write_archive(path, "one", modified_s=1_000)
    importer = zipimport.zipimporter(str(path))
    patch_zipimporter()
    importer.invalidate_caches()
    assert importer.find_spec(
        "one"
    )  # from Python 3.13 on this reads the archive, not the call above
    write_archive(path, "one", "two", modified_s=1_000)
    importer.invalidate_caches()
    assert importer.find_spec("two") is None


def test_an_archive_that_has_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    write_archive(path, "one", modified_s=1_000)
    importer = zipimport.zipimporter(str(path))
    patch_zipimporter()
    importer.invalidate_caches()
    write_archive(path, "one", "two", modified_s=2_000)
    importer.invalidate_caches()
    assert importer.find_spec("two") is not None


def test_versions_that_do_not_need_it_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    before = zipimport.zipimporter.invalidate_caches
    patch_zipimporter()
    assert zipimport.zipimporter.invalidate_caches is before


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Count calls from the first on, with the whole heap in the hands of the collector."""
    monkeypatch.setattr(worker_process, "_calls", 0)
    gc.unfreeze()
    yield
    gc.unfreeze()


def frozen_after(calls: int) -> list[bool]:
    """Return which calls keep from the collector what was imported before them."""
    found: list[bool] = []
    imported: list[list[list[None]]] = []
    for _ in range(calls):
        imported.append([[] for _ in range(2_000)])
        before = gc.get_freeze_count()
        begin_call()
        found.append(gc.get_freeze_count() > before + 1_000)
    return found


@pytest.mark.usefixtures("fresh")
def test_a_worker_does_not_collect_again_what_spark_and_its_first_calls_have_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_process, "_is_of_daemon", lambda: True)
    assert frozen_after(calls=7) == [True, True, False, False, False, True, False]


@pytest.mark.usefixtures("fresh")
def test_the_heap_of_other_processes_is_left_alone() -> None:
    assert not any(frozen_after(calls=7))


@pytest.mark.usefixtures("fresh")
def test_the_first_call_patches_the_importer(monkeypatch: pytest.MonkeyPatch) -> None:
    patched: list[int] = []
    monkeypatch.setattr(worker_process, "patch_zipimporter", lambda: patched.append(1))
    begin_call()
    begin_call()
    assert patched == [1]
