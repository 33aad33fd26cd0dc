"""The obligations of the port `Storage`, one test each, on every adapter and spelling.

Habits are told apart: S3 makes an etag of the content, SeaweedFS keeps keys as paths of a file
system, which shows in some of them (`docs/reference/s3.md`), and Azure knows no backslash.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from committer.errors import (
    AccessError,
    AlreadyExistsError,
    NotFoundError,
    ObjectTooLargeError,
    SettingsError,
    UndeletedError,
)
from committer.ports.storage import NewObject, ObjectInfo, Storage, create_or_equal
from committer.real_world import RealWorld
from committer.storage.adls.open_adls import open_adls
from committer.storage.disk.local import LocalStorage
from committer.storage.gcs.open_gcs import open_gcs
from committer.storage.probe import prove_conditions
from committer.storage.s3.s3_storage import S3Storage
from committer.storage.scheme import SchemeStorage
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.azurite import TEST_S_MAX, Azurite
from tests.support.servers.gcs_server import GcsServer
from tests.support.servers.s3_server import BUILT_S_MAX, S3Server
from tests.support.storages.guarded_storage import FOLDER, Vending


@dataclass(frozen=True)
class Case:
    """A storage, and a folder of it that is empty."""

    storage: Storage
    root: str
    etags_are_of_contents: bool = False
    keys_are_paths: bool = False
    has_backslashes: bool = True
    rivals: int = 8  # writers of one object
    hold: Callable[[], str] | None = None  # returns a location that cannot be deleted

    def at(self, name: str) -> str:
        return f"{self.root}/{name}"

    async def put(self, **contents: bytes) -> None:
        await self.storage.create([NewObject(self.at(k), v) for k, v in contents.items()])

    async def names(self, folder: str = "") -> list[str]:
        found = self.storage.list(self.root + folder)
        return [info.location.removeprefix(f"{self.root}/") async for info in found]


CASES = (
    *("local-path", "local-file", "local-file3", "memory", "scheme-local", "scheme-memory"),
    *("vended-own", "vended"),
)
S3_CASES = ("s3", "scheme-s3a")
OTHER_S3_CASES = ("s3-versitygw",)
ADLS_CASES = ("adls", "scheme-wasb")
IN_TIME = (pytest.mark.server, pytest.mark.timeout(TEST_S_MAX))
BUILT = (pytest.mark.server, pytest.mark.heavy, pytest.mark.timeout(BUILT_S_MAX))


@pytest.fixture(
    params=[
        *CASES,
        *(pytest.param(name, marks=pytest.mark.server) for name in ("s3", "gcs")),
        *(pytest.param(name, marks=BUILT) for name in OTHER_S3_CASES),
        pytest.param("adls", marks=IN_TIME),
        # "scheme-local" has other names of schemes, without a server.
        pytest.param("scheme-s3a", marks=(pytest.mark.server, pytest.mark.heavy)),
        pytest.param("scheme-wasb", marks=(*IN_TIME, pytest.mark.heavy)),
    ]
)
async def case(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Case]:
    makers = {
        **dict.fromkeys((*S3_CASES, *OTHER_S3_CASES), _case_on_s3),
        **dict.fromkeys(ADLS_CASES, _case_on_adls),
        "gcs": _case_on_gcs,
    }
    case = makers.get(request.param, _case)(request, tmp_path)
    yield case
    await case.storage.close()


def _case(request: pytest.FixtureRequest, folder: Path) -> Case:
    memory = MemoryStorage(world=ManualWorld())
    schemes = SchemeStorage({"file": LocalStorage(), "memory": memory})
    vended, own = Vending(), Vending()
    vended.vend()

    def held_on_disk() -> str:
        # A link to itself: no right of any user can follow it.
        (folder / "held").symlink_to("held")
        return f"{folder}/held/a"

    def held_in(memory: MemoryStorage, root: str) -> Callable[[], str]:
        def hold() -> str:
            memory.undeletable[f"{root}/held"] = AccessError("held")
            return f"{root}/held"

        return hold

    root = "memory://bucket/folder"
    cases = {
        "local-path": Case(LocalStorage(), f"{folder}", hold=held_on_disk),
        "local-file": Case(LocalStorage(), f"file:{folder}", hold=held_on_disk),
        "local-file3": Case(LocalStorage(), f"file://{folder}", hold=held_on_disk),
        "memory": Case(memory, root, hold=held_in(memory, root)),
        # The other objects are those of the other scheme.
        "scheme-local": Case(schemes, f"file:{folder}", hold=held_in(memory, "memory:/folder")),
        "scheme-memory": Case(schemes, "memory:/folder", hold=held_on_disk),
        "vended-own": Case(own.storage, root, hold=held_in(own.memory, root)),
        "vended": Case(vended.storage, FOLDER, hold=held_in(vended.memory, FOLDER)),
    }
    return cases[request.param]


def _case_on_s3(request: pytest.FixtureRequest, folder: Path) -> Case:
    is_other = request.param in OTHER_S3_CASES
    server: S3Server = request.getfixturevalue("versitygw" if is_other else "s3_server")
    storage: Storage = S3Storage(server.options, world=RealWorld())
    root = server.new_root()
    if request.param == "scheme-s3a":
        storage = SchemeStorage({"s3a": storage})
        root = root.replace("s3:", "s3a:")
    # SeaweedFS lets those who wait for an object look again after a second.
    return Case(
        storage,
        root,
        etags_are_of_contents=True,
        keys_are_paths=server.is_seaweedfs,
        has_backslashes=not server.is_seaweedfs,
        rivals=4 if server.is_seaweedfs else 8,
    )


def _case_on_gcs(request: pytest.FixtureRequest, folder: Path) -> Case:
    server: GcsServer = request.getfixturevalue("gcs_server")
    return Case(open_gcs(server.options, world=RealWorld()), server.new_root(), rivals=20)


def _case_on_adls(request: pytest.FixtureRequest, folder: Path) -> Case:
    server: Azurite = request.getfixturevalue("azurite")
    storage: Storage = open_adls(server.options, world=RealWorld())
    root = server.new_root()
    if request.param == "scheme-wasb":
        storage = SchemeStorage({"wasb": storage})
        root = root.replace("abfss:", "wasb:").replace(".dfs.", ".blob.")
    return Case(storage, root, has_backslashes=False, rivals=20)


async def wins(calls: list[Awaitable[object]]) -> int:
    """Return how many of the calls returned; the others raised `AlreadyExistsError`."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(error, AlreadyExistsError) for error in errors), errors
    return len(answers) - len(errors)


# --- Reading -------------------------------------------------------------------------------------


async def test_what_was_created_is_read_back(case: Case) -> None:
    await case.put(a=b"", b=bytes(range(256)) * 5_000)
    assert await case.storage.get(case.at("a")) == b""
    assert await case.storage.get(case.at("b")) == bytes(range(256)) * 5_000


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, 3, b"012"),
        (4, None, b"456789"),
        (8, 5, b"89"),
        (10, 1, b""),
        (99, None, b""),
        (3, 0, b""),
    ],
)
async def test_a_range_is_cut_to_the_objects_end(
    case: Case, offset: int, length: int | None, expected: bytes
) -> None:
    await case.put(a=b"0123456789")
    assert await case.storage.get(case.at("a"), offset=offset, length=length) == expected


async def test_an_object_larger_than_its_reader_takes_is_not_read(case: Case) -> None:
    await case.put(a=b"0123456789")
    assert await case.storage.get(case.at("a"), size_bytes_max=10) == b"0123456789"
    for part in ({}, {"offset": 2, "length": 3}, {"length": 0}):
        with pytest.raises(ObjectTooLargeError, match="has 10 bytes, and at most 9") as caught:
            await case.storage.get(case.at("a"), size_bytes_max=9, **part)
        assert caught.value.size_bytes == 10
    assert await case.storage.get(case.at("a")) == b"0123456789"


async def test_an_absent_object_is_not_found(case: Case) -> None:
    await case.put(folder=b"", **{"deep/object": b""})
    for name in ("absent", "absent/object", "deep", "folder/object"):
        with pytest.raises(NotFoundError, match=name):
            await case.storage.get(case.at(name))
        with pytest.raises(NotFoundError, match=name):
            await case.storage.head(case.at(name))


async def test_head_describes_an_object_as_it_was_spelled(case: Case) -> None:
    await case.put(a=b"12345")
    info = await case.storage.head(case.at("a"))
    assert (info.location, info.size_bytes) == (case.at("a"), 5)
    assert info.modified_ms > 1_700_000_000_000


async def test_percent_signs_and_odd_characters_stand_for_themselves(case: Case) -> None:
    names = ["day=a%2Fb/x", "day=a%252Fb/x", "q?x#y/x", "sp ace/ümläut", "a+b/x"]
    if case.has_backslashes:
        names.append("back\\slash")
    await case.put(**{name: name.encode() for name in names})
    assert await case.names() == sorted(names)
    for name in names:
        assert await case.storage.get(case.at(name)) == name.encode()


# --- Creating ------------------------------------------------------------------------------------


async def test_creating_what_exists_names_it_and_leaves_it_untouched(case: Case) -> None:
    await case.put(b=b"first")
    for content in (b"first", b"second"):
        with pytest.raises(AlreadyExistsError, match="/b`"):
            await case.put(a=b"", b=content)
        await case.storage.delete([case.at("a")])
    assert await case.storage.get(case.at("b")) == b"first"


async def test_of_concurrent_creates_of_one_location_one_returns(case: Case) -> None:
    for name in ("a", "new/folder/b", "c"):
        contents = [f"{number}".encode() * 1_000 for number in range(case.rivals)]
        assert await wins([case.put(**{name: content}) for content in contents]) == 1
        assert await case.storage.get(case.at(name)) in contents


async def test_a_large_group_is_created_whole(case: Case) -> None:
    group = {f"{number % 7}/{number:04d}": f"{number}".encode() for number in range(300)}
    await case.put(**group)
    assert await case.names() == sorted(group)


async def test_a_repeated_create_is_told_from_another_content(case: Case) -> None:
    created = NewObject(case.at("a"), b"content")
    assert await create_or_equal(case.storage, created)
    assert not await create_or_equal(case.storage, created)
    with pytest.raises(AlreadyExistsError):
        await create_or_equal(case.storage, NewObject(case.at("a"), b"other"))


async def test_an_empty_group_is_created_and_deleted(case: Case) -> None:
    await case.storage.create([])
    await case.storage.delete([])
    assert await case.names() == []


# --- Replacing -----------------------------------------------------------------------------------


async def test_an_object_is_replaced_by_its_etag_and_gets_a_new_one(case: Case) -> None:
    first = await case.storage.replace(case.at("a"), b"one", etag=None)
    second = await case.storage.replace(case.at("a"), b"two", etag=first)
    assert first != second
    assert (await case.storage.head(case.at("a"))).etag == second
    assert await case.storage.get(case.at("a")) == b"two"


async def test_a_stale_etag_replaces_nothing(case: Case) -> None:
    first = await case.storage.replace(case.at("a"), b"one", etag=None)
    await case.storage.replace(case.at("a"), b"two", etag=first)
    for etag in (first, None, "invented"):
        with pytest.raises(AlreadyExistsError, match="/a`"):
            await case.storage.replace(case.at("a"), b"six", etag=etag)
    with pytest.raises(AlreadyExistsError):
        await case.storage.replace(case.at("absent/b"), b"one", etag=first)
    assert await case.storage.get(case.at("a")) == b"two"
    assert await case.names() == ["a"]


async def test_an_etag_never_comes_back(case: Case) -> None:
    seen = set()
    for _ in range(50):
        etag = await case.storage.replace(case.at("a"), b"same", etag=None)
        seen |= {etag, await case.storage.replace(case.at("a"), b"same", etag=etag)}
        await case.storage.delete([case.at("a")])
    assert len(seen) == (1 if case.etags_are_of_contents else 100)


async def test_of_concurrent_replaces_of_one_etag_one_returns(case: Case) -> None:
    etag = None
    for turn in range(5):
        contents = [f"{turn}.{number}".encode() * 1_000 for number in range(case.rivals)]
        calls = [case.storage.replace(case.at("a"), each, etag=etag) for each in contents]
        assert await wins(list(calls)) == 1
        etag = (await case.storage.head(case.at("a"))).etag
        assert await case.storage.get(case.at("a")) in contents


# --- Deleting ------------------------------------------------------------------------------------


async def test_deleting_may_be_repeated_and_absent_objects_count_as_deleted(case: Case) -> None:
    await case.put(a=b"", **{"x/b": b"", "x/c": b""})
    for _ in range(2):
        await case.storage.delete([case.at(name) for name in ("a", "x/b", "absent/d", "x/b")])
        assert await case.names() == ["x/c"]


async def test_an_object_that_cannot_be_deleted_keeps_no_other_from_being_deleted(
    case: Case,
) -> None:
    if case.hold is None:
        pytest.skip("that a server refuses a deletion is shown with answers of its protocol")
    held = case.hold()
    await case.put(**dict.fromkeys(("a", "x/b", "z"), b""))
    names = [case.at(name) for name in ("a", "x/b", "z")]
    with pytest.raises(UndeletedError) as caught:
        await case.storage.delete([*names[:1], held, *names[1:]])
    assert list(caught.value.failures) == [held]
    assert not set(names) & {case.at(name) for name in await case.names()}
    with pytest.raises(type(caught.value.failures[held])):
        await case.storage.delete([held])


async def test_deleting_a_folder_deletes_nothing(case: Case) -> None:
    await case.put(**{"x/a": b""})
    await case.storage.delete([case.at("x")])
    assert await case.names() == ["x/a"]


async def test_a_deleted_location_can_be_created_again(case: Case) -> None:
    for content in (b"one", b"two"):
        await case.put(**{"x/y/a": content})
        assert await case.storage.get(case.at("x/y/a")) == content
        await case.storage.delete([case.at("x/y/a")])


# --- Listing -------------------------------------------------------------------------------------


async def test_a_listing_is_in_ascending_order_of_location(case: Case) -> None:
    names = ["a", "b/c/d", "b0", "B", "ä/x", "é", "z"]
    if not case.keys_are_paths:
        names += ["b!/x", "b-/x", "b.x", "b/c-d"]
    await case.put(**dict.fromkeys(names, b""))
    assert await case.names() == sorted(names)


async def test_a_listing_spells_locations_as_its_prefix_and_stays_below_it(case: Case) -> None:
    await case.put(**{"x/a": b"1", "x/y/b": b"22", "xy": b"", "x-/c": b""})
    for prefix in (case.at("x"), case.at("x/")):
        found = [info async for info in case.storage.list(prefix)]
        assert [info.location for info in found] == [case.at("x/a"), case.at("x/y/b")]
        assert found == [await case.storage.head(info.location) for info in found]


async def test_nothing_below_a_prefix_yields_nothing(case: Case) -> None:
    await case.put(a=b"")
    assert await case.names("/absent") == []
    assert await case.names("/a") == []


async def test_names_in_a_folder_are_those_of_its_objects_and_folders(case: Case) -> None:
    await case.put(**{"v1": b"", "v10.x": b"", "v/deep/a": b"", "v/b": b"", "w": b""})
    assert await case.storage.names(case.root) == ["v/", "v1", "v10.x", "w"]
    assert await case.storage.names(f"{case.root}/") == ["v/", "v1", "v10.x", "w"]
    assert await case.storage.names(case.root, starts_with="v1") == ["v1", "v10.x"]
    assert await case.storage.names(case.root, starts_with="x") == []
    assert await case.storage.names(case.at("v")) == ["b", "deep/"]
    for absent in ("absent", "w", "v1/below", "x" * 300):
        assert await case.storage.names(case.at(absent)) == []
    await case.storage.delete((case.at("w"), case.at("v/b")))
    assert await case.storage.names(case.root) == ["v/", "v1", "v10.x"]


async def test_a_listing_survives_deletions_and_keeps_what_stays(case: Case) -> None:
    names = [f"{number // 100:02d}/{number:04d}" for number in range(1_200)]
    await case.put(**dict.fromkeys(names, b""))
    listing = case.storage.list(case.root)
    seen: list[ObjectInfo] = [await anext(listing)]
    await case.storage.delete([case.at(name) for name in names[1::2]])
    seen += [info async for info in listing]
    listed = [info.location.removeprefix(f"{case.root}/") for info in seen]
    assert set(names[::2]) <= set(listed)
    assert listed == sorted(set(listed))


# --- Everything else -----------------------------------------------------------------------------


async def test_a_foreign_scheme_is_refused(case: Case) -> None:
    for location in ("http://host/a", "file://elsewhere/a", "relative/a", "http://host/\0"):
        calls: list[Awaitable[object]] = [
            case.storage.get(location),
            case.storage.head(location),
            case.storage.create([NewObject(location, b"")]),
            case.storage.replace(location, b"", etag=None),
            case.storage.replace(location, b"", etag="x"),
            case.storage.delete([location]),
            anext(case.storage.list(location)),
            case.storage.probe(location),
        ]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(answer) for answer in answers] == [SettingsError] * len(calls)


async def test_the_probe_passes_and_leaves_nothing(case: Case) -> None:
    await asyncio.gather(case.storage.probe(case.root), case.storage.probe(case.at("folder/")))
    assert await case.names() == []


class Careless(MemoryStorage):
    """Takes every write, as an object store without conditional writes would."""

    def __init__(self, ignores: str) -> None:
        super().__init__(world=ManualWorld())
        self._ignores = ignores

    async def create(self, objects: object) -> None:
        assert isinstance(objects, tuple)
        if self._ignores == "create only if absent":
            await self.delete([created.location for created in objects])
        await super().create(objects)

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        ignored = "replace only if absent" if etag is None else "replace only if unchanged"
        if self._ignores == ignored and (etag or content == b"other"):
            self._objects.pop(location, None)
            etag = None
        return await super().replace(location, content, etag=etag)


@pytest.mark.parametrize(
    "ignores", ["create only if absent", "replace only if absent", "replace only if unchanged"]
)
async def test_a_storage_that_ignores_a_condition_is_refused(ignores: str) -> None:
    careless = Careless(ignores)
    with pytest.raises(SettingsError, match=ignores):
        await prove_conditions(careless, "memory:/probe")
    assert [info async for info in careless.list("memory:/")] == []


async def test_closing_may_be_repeated(case: Case) -> None:
    await case.storage.close()
    await case.storage.close()
