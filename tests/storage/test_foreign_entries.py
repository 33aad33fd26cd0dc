"""An inbox on a disk that others can write to: what is no file is neither opened nor followed, and
never hides its neighbors."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from committer.errors import (
    NotFoundError,
    ObjectTooLargeError,
    SettingsError,
)
from committer.ports.skips import KEPT_MAX, SkipKind, Skips
from committer.ports.storage import NewObject
from committer.settings.secret_files import read_secret_files
from committer.storage.disk.local import LocalStorage
from committer.storage.disk.walk import walk
from committer.storage.inbox.high_water_mark_objects import HighWaterMarks
from committer.storage.inbox.key_file import KeyFile
from tests.support.clock.worlds import ManualWorld

ROOT = Path(__file__).parents[2]
NOBODY = 65534


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def storage(root: Path) -> LocalStorage:
    return LocalStorage(prune_below=[str(root)])


async def listed(
    storage: LocalStorage, folder: Path, *, levels_max: int = 4
) -> tuple[list[str], dict[str, SkipKind]]:
    """Return the names of objects, and the kinds of skipped entries by name."""
    skips = Skips(levels_max=levels_max)
    start = len(f"{folder}/")
    found = [one.location[start:] async for one in storage.list(str(folder), skips=skips)]
    return found, {one.location[start:]: one.kind for one in skips.first}


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    # A socket's path has a hundred bytes at most.
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


def make_device(path: Path) -> None:
    try:
        os.mknod(path, 0o666 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make a device")


def make_link(path: Path) -> None:
    secret = path.parent / "outside"
    secret.write_bytes(b"secret")
    path.symlink_to(secret)


def make_loop(path: Path) -> None:
    path.symlink_to(path)


KINDS = {
    "fifo": (make_fifo, SkipKind.FIFO),
    "socket": (make_socket, SkipKind.SOCKET),
    "device": (make_device, SkipKind.DEVICE),
    "link": (make_link, SkipKind.LINK),
    "loop": (make_loop, SkipKind.LINK),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["", "a/", "a/b/", "a/b/c/"])
async def test_an_entry_that_is_no_file_is_skipped_wherever_it_is(
    storage: LocalStorage, root: Path, kind: str, level: str
) -> None:
    make, expected = KINDS[kind]
    await storage.create([NewObject(f"{root}/a/b/c/{name}", b"x") for name in ("m", "z")])
    make(root / level / "n")
    found, skipped = await listed(storage, root)
    assert [name for name in found if "outside" not in name] == ["a/b/c/m", "a/b/c/z"]
    assert skipped == {f"{level}n": expected}


@pytest.mark.parametrize("kind", KINDS)
async def test_an_entry_that_is_no_file_is_no_object_and_reading_it_does_not_block(
    storage: LocalStorage, root: Path, kind: str
) -> None:
    KINDS[kind][0](root / "n")
    with pytest.raises(NotFoundError, match="is not a file: it is a"):
        await storage.get(f"{root}/n")
    with pytest.raises(NotFoundError, match="is not a file: it is a"):
        await storage.head(f"{root}/n")


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
async def test_outside_an_inbox_too_only_files_are_opened(root: Path, kind: str) -> None:
    storage = LocalStorage()
    KINDS[kind][0](root / "n")
    (root / "link").symlink_to(root / "n")
    for name in ("n", "link"):
        with pytest.raises(NotFoundError, match="is not a file: it is a"):
            await storage.get(f"{root}/{name}")
    assert await listed(storage, root) == (
        [],
        {"n": KINDS[kind][1], "link": KINDS[kind][1]},
    )


async def test_outside_an_inbox_a_link_to_a_file_is_followed(root: Path) -> None:
    """A warehouse belongs to its operator."""
    storage = LocalStorage()
    (root / "folder").mkdir()
    (root / "folder/file").write_bytes(b"x")
    (root / "linked").symlink_to(root / "folder")
    (root / "gone").symlink_to(root / "nowhere")
    (root / "loop").symlink_to(root / "loop")
    (root / "link").symlink_to(root / "folder/file")
    assert await storage.get(f"{root}/linked/file") == b"x"
    assert (await listed(storage, root))[0] == ["folder/file", "link"]


async def test_below_an_inbox_no_part_of_a_path_is_followed(
    storage: LocalStorage, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "b/c").mkdir(parents=True)
    (outside / "b/c/d").write_bytes(b"secret")
    (root / "a").symlink_to(outside)
    for path in ("a/b/c/d", "a/../../outside/b/c/d", "x/../a/b/c/d"):
        with pytest.raises(NotFoundError):
            await storage.get(f"{root}/{path}")
        with pytest.raises(NotFoundError):
            await storage.head(f"{root}/{path}")
        await storage.delete([f"{root}/{path}"])
    assert (outside / "b/c/d").read_bytes() == b"secret"
    with pytest.raises(SettingsError, match="link"):
        await storage.create([NewObject(f"{root}/a/b/c/e", b"x")])
    assert not (outside / "b/c/e").exists()
    assert await listed(storage, root) == ([], {"a": SkipKind.LINK})
    assert await listed(storage, root / "a/b") == ([], {})
    skips = Skips(levels_max=4)
    assert [one async for one in storage.list(f"{root}/a/", skips=skips)] == []
    assert [(one.location, one.kind) for one in skips.first] == [(f"{root}/a", SkipKind.LINK)]


async def test_the_root_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    storage = LocalStorage(prune_below=[f"{tmp_path}/link"])
    await storage.create([NewObject(f"{tmp_path}/link/a/b", b"x")])
    assert await storage.get(f"{tmp_path}/link/a/b") == b"x"
    assert (await listed(storage, tmp_path / "link"))[0] == ["a/b"]
    await storage.delete([f"{tmp_path}/link/a/b"])
    assert not (root / "a").exists()


async def test_names_that_no_location_can_spell_are_skipped(
    storage: LocalStorage, root: Path
) -> None:
    (root / os.fsdecode(b"\xff\xfe")).mkdir()
    (root / os.fsdecode(b"\xffile")).touch()
    (root / "a\nb\x1b[31m").write_bytes(b"x")
    found, skipped = await listed(storage, root)
    assert found == ["a\nb\x1b[31m"]
    assert skipped == {"\\udcffile": SkipKind.NAME, "\\udcff\\udcfe": SkipKind.NAME}


async def test_a_folder_below_the_last_level_is_not_entered(
    storage: LocalStorage, root: Path
) -> None:
    await storage.create([NewObject(f"{root}/a/b/c/{name}", b"") for name in ("d", "e/f", "g/h/i")])
    found, skipped = await listed(storage, root)
    assert found == ["a/b/c/d"]
    assert skipped == {"a/b/c/e": SkipKind.DEEP_FOLDER, "a/b/c/g": SkipKind.DEEP_FOLDER}


@pytest.fixture
def deep(root: Path) -> Iterator[None]:
    """Create three thousand folders in one another, which no path can name."""
    descriptor = os.open(root, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    yield
    subprocess.run(["rm", "-rf", root / "d"], check=True)


@pytest.mark.usefixtures("deep")
async def test_a_very_deep_tree_is_listed_as_far_as_it_is_shown(
    storage: LocalStorage, root: Path
) -> None:
    (root / "e").write_bytes(b"x")
    assert await listed(storage, root) == (["e"], {"d/d/d/d": SkipKind.DEEP_FOLDER})
    assert [one.location async for one in storage.list(str(root))] == [f"{root}/e"]


async def test_a_file_of_a_tebibyte_is_listed_and_not_read(
    storage: LocalStorage, root: Path
) -> None:
    with (root / "big").open("wb") as file:
        file.truncate(1 << 40)
    (found,) = [one async for one in storage.list(str(root))]
    assert found.size_bytes == 1 << 40
    with pytest.raises(ObjectTooLargeError):
        await storage.get(f"{root}/big", size_bytes_max=1 << 20)


async def test_of_a_file_that_grows_no_more_is_read_than_it_had(
    storage: LocalStorage, root: Path
) -> None:
    with (root / "a").open("wb") as file:
        file.truncate(1 << 20)
    assert len(await storage.get(f"{root}/a", length=1 << 40, size_bytes_max=1 << 20)) == 1 << 20


def test_what_vanishes_while_it_is_listed_is_left_out(root: Path) -> None:
    for name in ("a", "b", "c"):
        (root / name).mkdir()
        (root / name / "x").write_bytes(b"")
    found = walk(str(root), [str(root)])
    assert next(found).location == f"{root}/a/x"
    (root / "b/x").unlink()
    (root / "b").rmdir()
    (root / "c").rename(root / "d")
    (root / "c").symlink_to(root / "a")
    assert list(found) == []


def test_a_folder_that_becomes_a_link_while_it_is_listed_is_not_left_for_it(root: Path) -> None:
    for name in ("a", "z"):
        (root / name).mkdir()
        for number in range(2):
            (root / name / str(number)).write_bytes(b"")
    found = walk(str(root), [str(root)])
    assert next(found).location == f"{root}/a/0"
    (root / "a").rename(root / "was-a")
    (root / "a").symlink_to("/nowhere")
    assert [one.location for one in found] == [f"{root}/a/1", f"{root}/z/0", f"{root}/z/1"]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_listing_leaves_no_descriptors_open(root: Path) -> None:
    for name in ("a/b/c", "a/d/e", "f/g"):
        (root / name).mkdir(parents=True)
        (root / name / "x").write_bytes(b"")
    before = descriptors()
    assert len(list(walk(str(root), [str(root)]))) == 3
    begun = walk(str(root), [str(root)])
    next(begun)
    begun.close()
    assert descriptors() == before


_AS_NOBODY = f"""
import asyncio, os, sys
from committer.errors import AccessError
from committer.ports.skips import Skips
from committer.storage.disk.local import LocalStorage
root = sys.argv[1]
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
async def run():
    storage = LocalStorage(prune_below=[root])
    skips = Skips(levels_max=4)
    print([one.location[len(root):] async for one in storage.list(root, skips=skips)])
    print(*((one.location[len(root):], one.kind.value) for one in skips.first))
    print(skips.may_hide(root + "/b/x"), skips.may_hide(root + "/a/x"), skips.may_hide_below(root))
    try:
        [one async for one in storage.list(root)]
    except AccessError as error:
        print("AccessError", str(error).replace(root, ""))
    await storage.close()
asyncio.run(run())
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """Yield a folder that every user may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_folder_without_rights_hides_what_is_in_it_and_nothing_else(public: Path) -> None:
    root = public
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    for name in ("a", "b", "c"):
        (root / name).mkdir()
        (root / name / "x").write_bytes(b"")
        (root / name).chmod(0o755)
    (root / "b").chmod(0)
    (root / "c").chmod(0o744)
    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, root], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "['/a/x']",
        "('/b', 'no_access') ('/c/x', 'no_access')",
        "True False True",
        "AccessError `/b/`: Permission denied",
    ], done.stderr


def test_of_many_skipped_entries_the_first_are_kept_and_all_are_counted() -> None:
    skips = Skips(levels_max=4)
    for number in range(KEPT_MAX + 5):
        skips.add(f"/r/{number}", SkipKind.NO_ACCESS)
    assert len(skips.first) == KEPT_MAX
    assert skips.counts == {SkipKind.NO_ACCESS: KEPT_MAX + 5}
    assert skips.may_hide("/elsewhere"), "which others hide objects is not known any more"


# --- Files that are read for themselves ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["fifo", "device", "socket"])
async def test_a_file_of_keys_that_is_none_is_told_so(root: Path, kind: str) -> None:
    KINDS[kind][0](root / "keys.toml")
    keys = KeyFile(LocalStorage(), str(root / "keys.toml"), ManualWorld())
    with pytest.raises(SettingsError, match=r"`security.keys`: .* is not a file: it is a"):
        await keys.read()


async def test_a_file_of_keys_of_a_tebibyte_is_not_read(root: Path) -> None:
    with (root / "keys.toml").open("wb") as file:
        file.truncate(1 << 40)
    keys = KeyFile(LocalStorage(), str(root / "keys.toml"), ManualWorld())
    with pytest.raises(ObjectTooLargeError):
        await keys.read()


@pytest.mark.parametrize("kind", ["fifo", "device", "a tebibyte"])
def test_a_secret_that_is_no_small_file_is_told_so(root: Path, kind: str) -> None:
    secret = root / "secret"
    if kind in KINDS:
        KINDS[kind][0](secret)
    else:
        with secret.open("wb") as file:
            file.truncate(1 << 40)
    (root / "link").symlink_to(secret)
    for path in (secret, root / "link"):
        with pytest.raises(
            SettingsError,
            match=r"cannot be read: it is (a pipe, not|a device, not|larger than 65536 bytes)",
        ):
            read_secret_files({"FRAZIL_QUEUE__URL_FILE": str(path)})


def test_a_secret_behind_links_is_read_as_kubernetes_lays_it_out(root: Path) -> None:
    (root / "..data").mkdir()
    (root / "..data/url").write_text("redis://q\n")
    (root / "url").symlink_to("..data/url")
    found = read_secret_files({"FRAZIL_QUEUE__URL_FILE": str(root / "url")})
    assert found == {"FRAZIL_QUEUE__URL": "redis://q"}


@pytest.mark.parametrize("kind", KINDS)
async def test_what_stands_in_the_place_of_a_high_water_mark_is_told(
    storage: LocalStorage, root: Path, kind: str
) -> None:
    high_water_marks = HighWaterMarks(storage, str(root))
    path = root / "witness" / str(UUID(int=1))
    path.parent.mkdir()
    KINDS[kind][0](path)
    assert await high_water_marks.etag(UUID(int=1)) is None
    with pytest.raises(SettingsError, match="found something that is no file: remove it"):
        await high_water_marks.replace(UUID(int=1), b"x", etag=None)
