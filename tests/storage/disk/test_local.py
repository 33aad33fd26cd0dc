"""Local files beyond the port: durability, processes, permissions, pruning."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from committer.errors import (
    AccessError,
    AlreadyExistsError,
    NotFoundError,
    SettingsError,
    StorageUnavailableError,
)
from committer.place_threads import PlaceThreads, caller
from committer.ports.storage import NewObject, create_or_equal
from committer.storage.disk.local import LocalStorage
from committer.storage.disk.local_files import local_path

ROOT = Path(__file__).parents[3]


@contextmanager
def process(code: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """Run code in a process of its own; it prints a line when under way. Killed at the end."""
    prelude = (
        "import sys\n"
        "from pathlib import Path\n"
        "from committer.errors import *\n"
        "from committer.ports.storage import NewObject\n"
        "from committer.storage.disk import durable_writes, local_files\n"
        "from committer.storage.disk.empty_folders import EmptyFolders\n"
        "arguments = sys.argv[1:]\n"
        "print(flush=True)\n"
    )
    command = [sys.executable, "-c", prelude + code, *map(str, arguments)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout
            child.stdout.readline()
            yield child
        finally:
            child.kill()


def run_processes(code: str, argument_lists: Sequence[Sequence[object]]) -> None:
    """Run the code in several processes at once, to a good end."""
    with ExitStack() as stack:
        children = [stack.enter_context(process(code, *each)) for each in argument_lists]
        assert [child.wait() for child in children] == [0] * len(children)


def children(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def names(storage: LocalStorage, folder: Path) -> list[str]:
    found = [info.location async for info in storage.list(str(folder))]
    return [location.removeprefix(f"{folder}/") for location in found]


def inode(path: Path) -> int:
    return path.stat().st_ino


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("FILE://localhost/a", "/a"),
        ("/a%20b/c=%2F", "/a%20b/c=%2F"),
        ("file:///a b", "/a b"),
    ],
)
def test_spellings_of_one_path(location: str, path: str) -> None:
    assert local_path(location) == Path(path)


@pytest.mark.parametrize(
    "location", ["a", "file:a", "file://", "file://host/a", "s3://b/a", "/a\0", "/\udc80\ud800", ""]
)
def test_what_is_no_local_location_is_refused(location: str) -> None:
    with pytest.raises(SettingsError, match="location"):
        local_path(location)


async def test_a_group_is_one_job_of_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[object] = []
    submit = PlaceThreads.submit

    def counting(self, job, /, *arguments, **named):  # type: ignore[no-untyped-def]
        jobs.append(job)
        return submit(self, job, *arguments, **named)

    monkeypatch.setattr(PlaceThreads, "submit", counting)
    storage = LocalStorage()
    await storage.create([NewObject(f"{tmp_path}/{number}", b"x") for number in range(200)])
    assert len(jobs) == 1
    await names(storage, tmp_path)
    assert len(jobs) == 3, "a listing is a job a thousand objects, and one that finds the end"
    await storage.close()


# --- Durable, whole, alone -----------------------------------------------------------------------


async def test_files_are_synced_before_they_get_their_name_and_folders_before_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real = os.fsync, os.link, os.replace

    def fsync(descriptor: int) -> None:
        target = Path(f"/proc/self/fd/{descriptor}").readlink()
        steps.append("sync file" if target.is_file() else f"sync {target.relative_to(tmp_path)}")
        real[0](descriptor)

    def link(source: str, target: str) -> None:
        steps.append(f"link {Path(target).name}")
        real[1](source, target)

    def rename(source: str, target: str) -> None:
        steps.append(f"rename to {Path(target).name}")
        real[2](source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", link)
    monkeypatch.setattr(os, "replace", rename)
    storage = LocalStorage()
    etag = await storage.replace(f"{tmp_path}/x/y/a", b"1", etag=None)
    assert steps == ["sync file", "link a", "sync x/y", "sync .", "sync x"]
    steps.clear()
    await storage.replace(f"{tmp_path}/x/y/a", b"2", etag=etag)
    assert steps == ["sync file", "rename to a", "sync x/y"]
    steps.clear()
    with pytest.raises(AlreadyExistsError):
        await storage.create([NewObject(f"{tmp_path}/x/y/a", b"3")])
    assert steps == ["sync file", "link a", "sync x/y", "sync x", "sync ."], "it is durable too"


async def test_a_killed_writer_leaves_whole_objects_only(tmp_path: Path) -> None:
    code = (
        "for number in range(10**9):\n"
        "    locations = [f'{arguments[0]}/{number}-{k}' for k in range(9)]\n"
        "    objects = [NewObject(each, b'x' * 100_000) for each in locations]\n"
        "    assert durable_writes.create_groups([objects]) == [None]\n"
    )
    storage = LocalStorage()
    with process(code, tmp_path) as writer:
        while len(await names(storage, tmp_path)) < 20:
            assert writer.poll() is None
    sizes = {info.size_bytes async for info in storage.list(str(tmp_path))}
    assert sizes == {100_000}


async def test_replaces_of_several_processes_lose_no_update(tmp_path: Path) -> None:
    location = f"{tmp_path}/counter"
    storage = LocalStorage()
    await storage.replace(location, b"0", etag=None)
    code = (
        "location, wins = arguments[0], 0\n"
        "while wins < 15:\n"
        "    etag = local_files.describe(location).etag\n"
        "    value = int(local_files.read(location, 0, None))\n"
        "    try:\n"
        "        durable_writes.replace(location, str(value + 1).encode(), etag)\n"
        "        wins += 1\n"
        "    except AlreadyExistsError: pass\n"
    )
    run_processes(code, [[location]] * 3)
    assert await storage.get(location) == b"45"


def test_creates_and_pruning_deletes_of_several_processes_do_not_disturb_one_another(
    tmp_path: Path,
) -> None:
    code = (
        "for number in range(40):\n"
        "    location = f'{arguments[0]}/a/b/{arguments[1]}-{number}'\n"
        "    assert durable_writes.create_groups([[NewObject(location, b'')]]) == [None]\n"
        "    durable_writes.delete([location], EmptyFolders([arguments[0]], quiet_s=0))\n"
    )
    run_processes(code, [[tmp_path, number] for number in range(3)])
    assert children(tmp_path) == []


async def test_a_folder_locked_by_a_stopped_process_is_an_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("committer.storage.disk.durable_writes._ATTEMPTS_MAX", 3)
    storage = LocalStorage()
    etag = await storage.replace(f"{tmp_path}/a", b"", etag=None)
    code = (
        "import fcntl, os\n"
        "fcntl.flock(os.open(arguments[0], os.O_RDONLY), fcntl.LOCK_EX)\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    with process(code, tmp_path) as holder:
        assert holder.stdout
        holder.stdout.readline()
        with pytest.raises(StorageUnavailableError, match="lock"):
            await storage.replace(f"{tmp_path}/a", b"x", etag=etag)
    await storage.replace(f"{tmp_path}/a", b"x", etag=etag)


async def test_a_lock_on_a_folder_that_was_made_again_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, folder = LocalStorage(), tmp_path / "x"
    etag = await storage.replace(f"{folder}/a", b"", etag=None)
    locked: list[int] = []
    real = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if not locked:
            folder.rename(tmp_path / "gone")
            folder.mkdir()
            (tmp_path / "gone/a").rename(folder / "a")
        locked.append(os.fstat(descriptor).st_ino)
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    await storage.replace(f"{folder}/a", b"x", etag=etag)
    assert locked == [inode(tmp_path / "gone"), inode(folder)]


async def test_an_etag_changes_even_where_the_clock_went_back(tmp_path: Path) -> None:
    storage, later_ns = LocalStorage(), 2**62
    await storage.replace(f"{tmp_path}/a", b"1", etag=None)
    os.utime(tmp_path / "a", ns=(later_ns, later_ns))
    etag = (await storage.head(f"{tmp_path}/a")).etag
    etag = await storage.replace(f"{tmp_path}/a", b"2", etag=etag)
    assert int(etag.split("-")[1], 16) > later_ns


# --- Folders -------------------------------------------------------------------------------------


async def test_emptied_folders_go_below_the_named_root_and_stay_elsewhere(tmp_path: Path) -> None:
    storage = LocalStorage(prune_below=[f"file:{tmp_path}/inbox"], quiet_s=0)
    keep = [f"{tmp_path}/inbox/t/p/1/a", f"{tmp_path}/inbox/t/p/2/b", f"{tmp_path}/table/x/c"]
    await storage.create([NewObject(location, b"") for location in keep])
    await storage.delete([keep[0], keep[2]])
    assert children(tmp_path / "inbox/t/p") == ["2"]
    assert (tmp_path / "table/x").is_dir()
    await storage.delete([keep[1]])
    assert children(tmp_path / "inbox") == []


async def test_a_folder_that_is_used_again_and_again_stays_until_it_is_quiet(
    tmp_path: Path,
) -> None:
    storage = LocalStorage(prune_below=[str(tmp_path)], quiet_s=60)

    async def use(location: str) -> None:
        await storage.create([NewObject(location, b"")])
        await storage.delete([location])

    await use(f"{tmp_path}/t/quiet/1/a")
    await use(f"{tmp_path}/t/busy/1/a")
    assert sorted(children(tmp_path / "t")) == ["busy", "quiet"], "without their epochs"
    assert children(tmp_path / "t/busy") == children(tmp_path / "t/quiet") == []
    # As if the file system's clock were a minute further.
    later_ns = (tmp_path / "t/busy").stat().st_mtime_ns + 61 * 10**9
    real = os.stat

    def stat(path: str | int, **options: object) -> os.stat_result:
        found = real(path, **options)  # type: ignore[arg-type]
        if str(path).endswith("t/busy"):
            os.utime(path, ns=(later_ns, later_ns))
            return real(path)
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("committer.storage.disk.empty_folders.os.stat", stat)
        await use(f"{tmp_path}/t/busy/2/a")
    assert children(tmp_path / "t") == ["busy"]


async def test_leftovers_of_a_crash_and_links_to_folders_are_not_listed(tmp_path: Path) -> None:
    storage = LocalStorage()
    await storage.create([NewObject(f"{tmp_path}/x/a", b"")])
    (tmp_path / "x/.frazil-1-1.tmp").write_bytes(b"half")
    (tmp_path / "x/.frazil").write_bytes(b"another program's")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert await names(storage, tmp_path) == ["x/.frazil", "x/a"]


async def test_a_place_where_no_folder_can_be_made_is_named() -> None:
    with pytest.raises(SettingsError, match="no folder can be made in `/proc`"):
        await LocalStorage().create([NewObject("/proc/requests/a", b"")])


async def test_a_file_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    storage = LocalStorage()
    await storage.create([NewObject(f"{tmp_path}/a", b"")])
    for name in ("a/b", "a/b/c"):
        with pytest.raises(SettingsError, match="not a folder"):
            await storage.create([NewObject(f"{tmp_path}/{name}", b"")])


async def test_new_files_have_the_permissions_that_the_user_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        await LocalStorage().create([NewObject(f"{tmp_path}/a", b"")])
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


# --- Errors of the system ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, StorageUnavailableError),
        (errno.EDQUOT, StorageUnavailableError),
        (errno.EIO, StorageUnavailableError),
        (errno.EMFILE, StorageUnavailableError),
        (errno.EROFS, AccessError),
        (errno.EACCES, AccessError),
        (errno.ENAMETOOLONG, SettingsError),
    ],
)
async def test_errors_of_the_system_tell_the_caller_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, expected: type[Exception]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    storage = LocalStorage()
    etag = await storage.replace(f"{tmp_path}/a", b"old", etag=None)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync" if number != errno.EMFILE else "utime", fail)
        with pytest.raises(expected, match="/b`"):
            await storage.create([NewObject(f"{tmp_path}/b", b"")])
        with pytest.raises(expected, match="/a`"):
            await storage.replace(f"{tmp_path}/a", b"new", etag=etag)
    assert await storage.get(f"{tmp_path}/a") == b"old"
    assert children(tmp_path) == ["a"], "no half files stay"


async def test_a_file_that_does_not_fit_is_transient_and_leaves_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StorageUnavailableError, match="too large"):
            await LocalStorage().create([NewObject(f"{tmp_path}/a", b"x" * 200_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert children(tmp_path) == []


async def test_a_file_system_without_hard_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(SettingsError, match="cannot link"):
        await LocalStorage().probe(str(tmp_path))
    assert children(tmp_path) == []


async def test_a_too_long_name_is_named(tmp_path: Path) -> None:
    storage = LocalStorage()
    with pytest.raises(SettingsError, match="too long"):
        await storage.create([NewObject(f"{tmp_path}/{'a' * 300}", b"")])
    for look in (storage.get, storage.head):
        with pytest.raises(NotFoundError, match="too long"):
            await look(f"{tmp_path}/{'a' * 300}")
    assert children(tmp_path) == []


@contextmanager
def unprivileged() -> Iterator[None]:
    """Switch to another user for a while: the superuser may do everything."""
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if superuser:
            os.seteuid(0)


async def test_missing_permissions_are_an_access_error(tmp_path: Path) -> None:
    storage = LocalStorage()
    await storage.create([NewObject(f"{tmp_path}/x/a", b"")])
    (tmp_path / "x").chmod(0)
    with unprivileged():
        with pytest.raises(AccessError, match="x/a"):
            await storage.get(f"{tmp_path}/x/a")
        with pytest.raises(AccessError, match="x/b"):
            await storage.create([NewObject(f"{tmp_path}/x/b", b"")])
        with pytest.raises(AccessError, match="x/a"):
            await storage.delete([f"{tmp_path}/x/a"])
        with pytest.raises(AccessError, match="x"):
            await names(storage, tmp_path / "x")
    (tmp_path / "x").chmod(0o700)
    assert await names(storage, tmp_path) == ["x/a"]


async def test_the_checksums_that_hadoop_writes_go_with_their_file(tmp_path: Path) -> None:
    inbox, table = tmp_path / "inbox", tmp_path / "table"
    storage = LocalStorage(prune_below=[str(inbox)])
    for folder in (inbox / "below", table):
        folder.mkdir(parents=True)
        for name in ("v1.json", ".v1.json.crc", "v2.json", ".v2.json.crc", "crc", ".v1.json"):
            (folder / name).write_bytes(b"x")
    await storage.delete([str(table / "v1.json"), str(table / "absent"), str(table / "crc")])
    left = sorted(path.name for path in table.iterdir())
    assert left == [".v1.json", ".v2.json.crc", "v2.json"]
    # Without its file it goes as well: a deletion that was interrupted is done again.
    (table / ".v1.json.crc").write_bytes(b"x")
    await storage.delete([str(table / "v1.json")])
    assert not (table / ".v1.json.crc").exists()
    # Where requests are there are none, and nothing is looked for.
    await storage.delete([str(inbox / "below" / "v1.json")])
    assert (inbox / "below" / ".v1.json.crc").exists()
    await storage.close()


# --- A disk that does not answer -----------------------------------------------------------------


async def test_a_create_on_a_disk_that_hangs_fails_in_time_and_may_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, real = threading.Event(), os.fsync

    def fsync(descriptor: int) -> None:
        opened.wait()
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    storage = LocalStorage(answer_s=0.0)
    created = NewObject(f"{tmp_path}/object", b"content")
    with pytest.raises(StorageUnavailableError, match=r"files: `.*/object` gave no answer"):
        await asyncio.wait_for(storage.create((created,)), 600.0)
    opened.set()
    patient = LocalStorage()
    await create_or_equal(patient, created)
    assert await patient.get(created.location) == b"content"
    await storage.close()
    await patient.close()


async def test_each_table_and_the_inbox_have_threads_of_their_own(tmp_path: Path) -> None:
    storage = LocalStorage(prune_below=(f"{tmp_path}/requests",))

    async def threads_of(name: str, location: str) -> str:
        caller.set(name)
        await storage.create((NewObject(location, b"content"),))
        return storage._name(location)

    tasks = [
        asyncio.create_task(threads_of(name, f"{tmp_path}/{path}"))
        for name, path in (
            ("table db.a", "a/metadata/1"),
            ("table db.b", "b/metadata/1"),
            ("table db.b", "requests/inbox/1"),
            ("", "c/metadata/1"),
        )
    ]
    assert await asyncio.gather(*tasks) == [
        "files of table db.a",
        "files of table db.b",
        "files of the inbox",
        "files",
    ]
    assert len(storage._places) == 4
    await storage.close()
