"""Which spellings of a location are allowed: byte for byte below a place of the table, or not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from committer.plan.batch.data_locations import (
    AllowedPlaces,
    all_name_attempt,
    attempt_named,
    names_attempt,
)
from tests.support.builders.flights import build_flights
from tests.support.builders.refused_paths import REFUSED, TABLE

PLACES = AllowedPlaces((f"{TABLE}/", "s3://data/flights/"))

ALLOWED = [
    "/data/x.parquet",
    "/x.parquet",
    "/data/carrier=AA/x.parquet",
    "/data/carrier=a%2Fb/x.parquet",
    "/data/carrier=100%25/x.parquet",
    "/data/carrier=%/x.parquet",
    "/data/carrier=%E6%97%A5/x.parquet",
    "/data/carrier=日本/x.parquet",
    "/data/carrier=a+b/x.parquet",
    "/data/carrier=a b/x.parquet",
    "/data/carrier=../x.parquet",
    "/data/carrier=.../x.parquet",
    "/data/.../x.parquet",
    "/data/..x/x.parquet",
    "/data/x../x.parquet",
    "/data/.hidden/x.parquet",
    "/data/_temporary/x.parquet",
    "/data/a=1/b=2/c=3/x.parquet",
    "/data/0110/1011/1010/00100100/x.parquet",
    "/metadata/x.avro",
    "/data/name=a;b,c&d=e/x.parquet",
    "/data/name='a'/x.parquet",
    "/data/name=a:b@c/x.parquet",
    "/data/name=~a$b!c(d)*/x.parquet",
    "/data/name=%5Ba%5D/x.parquet",
    "/data/name=a%2F..%2Fb/x.parquet",
    "/data/X.PARQUET",
    "/s3:/x.parquet",
    "/data/%2e%2e%2e/x.parquet",
    "/data/" + "x" * 3_000 + ".parquet",
]


@pytest.mark.parametrize("rest", ALLOWED)
def test_a_plain_path_below_the_table_is_allowed(rest: str) -> None:
    assert PLACES.refusal(TABLE + rest) is None
    assert PLACES.refusal("s3://data/flights" + rest) is None


@pytest.mark.parametrize("path", REFUSED)
def test_any_other_spelling_or_place_is_refused_with_a_reason(path: str) -> None:
    refusal = PLACES.refusal(path)
    assert refusal is not None
    assert len(refusal) > 10


@given(st.text(alphabet="ab./\\%2eEfF5cC?#\n:", max_size=40))
def test_what_is_allowed_stays_below_however_it_is_read(rest: str) -> None:
    path = f"{TABLE}/{rest}"
    if PLACES.refusal(path) is not None:
        return
    assert path.startswith(f"{TABLE}/")
    for decoded in (rest, rest.replace("%2f", "/").replace("%2F", "/").replace("%2e", ".")):
        depth = 0
        for segment in decoded.replace("%2E", ".").split("/"):
            depth += -1 if segment == ".." else 0 if segment in ("", ".") else 1
            assert depth >= 0
    assert not rest.endswith("/")
    assert "//" not in rest


@pytest.mark.parametrize("name", ["a%2e", "%", "%41", "\xfc", "e\u0301", "日本", "\u212a"])
def test_a_file_name_that_can_be_spelled_in_two_ways_is_refused(name: str) -> None:
    for path in (f"{TABLE}/data/{name}", f"{TABLE}/data/carrier=AA/x-{name}-y.parquet"):
        assert "can be spelled in two ways" in (PLACES.data_refusal(path) or "")
        # Of a manifest the content counts, and of a folder nothing.
        assert PLACES.refusal(path) is None
        assert PLACES.data_refusal(f"{path}/x.parquet") is None


def test_a_table_names_its_places() -> None:
    table = build_flights(
        properties={
            "write.data.path": "s3://data/flights/",
            "write.metadata.path": "s3://meta/flights",
            "write.object-storage.path": "s3://legacy",
        }
    )
    assert AllowedPlaces.of(table.metadata).prefixes == (
        "memory://warehouse/db/flights/",
        "s3://data/flights/",
        "s3://meta/flights/",
    )


@pytest.mark.parametrize(
    ("properties", "path", "is_refused"),
    [
        ({}, "{t}/metadata/x.parquet", True),
        ({}, "{t}/metadata.parquet", False),
        ({}, "{t}/data/metadata/x.parquet", False),
        ({"write.metadata.path": "s3://meta"}, "s3://meta/x.parquet", True),
        ({"write.metadata.path": "s3://meta"}, "{t}/metadata/x.parquet", True),
        ({"write.data.path": "{t}"}, "{t}/metadata/x.parquet", True),
        ({"write.data.path": "{t}/metadata/data"}, "{t}/metadata/data/x.parquet", False),
        ({"write.metadata.path": "{t}/data"}, "{t}/data/x.parquet", False),
    ],
)
def test_a_data_file_lies_outside_the_metadata_unless_data_is_kept_inside(
    properties: dict[str, str], path: str, is_refused: bool
) -> None:
    location = build_flights().metadata.location
    filled = {key: value.format(t=location) for key, value in properties.items()}
    places = AllowedPlaces.of(build_flights(properties=filled).metadata)
    refusal = places.data_refusal(path.format(t=location))
    assert refusal == ("it is in the folder of the table's metadata" if is_refused else None)
    assert places.refusal(path.format(t=location)) is None


def test_a_place_that_is_named_twice_counts_once() -> None:
    table = build_flights(properties={"write.data.path": "memory://warehouse/db/flights/"})
    assert AllowedPlaces.of(table.metadata).prefixes == ("memory://warehouse/db/flights/",)


ATTEMPT = "0d6f8e1c-5b0f-4c0e-9a53-6f1d2b3c4d5e"
OTHER = "7b3e2f10-aa01-4bcd-8e5f-0123456789ab"


@pytest.mark.parametrize(
    ("name", "names"),
    [
        (f"data/00000-{ATTEMPT}.parquet", True),
        (f"data/{ATTEMPT}", True),
        (f"{ATTEMPT}.parquet", True),
        (f"data/00000-{ATTEMPT}-00001.zstd.parquet", True),
        (f"data/{ATTEMPT}/00000.parquet", False),
        (f"data/x={ATTEMPT}/00000.parquet", False),
        (f"data/00000-{ATTEMPT.upper()}.parquet", False),
        (f"data/00000-{ATTEMPT.replace('-', '')}.parquet", False),
        (f"data/00000-{ATTEMPT[:-1]}.parquet", False),
        # Another request's attempt may stand before it, and never behind it.
        (f"data/{OTHER}-{ATTEMPT}.parquet", True),
        (f"data/{OTHER.upper()}{ATTEMPT}.parquet", True),
        (f"data/{ATTEMPT}-{ATTEMPT}.parquet", True),
        (f"data/{ATTEMPT}-{OTHER}.parquet", False),
        (f"data/{ATTEMPT}-{OTHER.upper()}.parquet", False),
        (f"data/{ATTEMPT}-{ATTEMPT.upper()}.parquet", False),
        (f"data/{ATTEMPT}{OTHER}", False),
        (f"data/{ATTEMPT}/{OTHER}.parquet", False),
        (f"data/{OTHER}/{ATTEMPT}.parquet", True),
        # Its last eight digits are the first of another uuid.
        (f"data/{ATTEMPT}-0000-0000-0000-{'0' * 12}.parquet", False),
        (f"data/{ATTEMPT}-0000-0000-0000-{'0' * 12}", False),
        (f"data/{ATTEMPT}-0000-0000-0000-{'0' * 11}.parquet", True),
        (f"data/0000-{ATTEMPT}-00000000-0000-0000.parquet", True),
        ("data/00000.parquet", False),
    ],
)
def test_the_attempt_is_the_last_uuid_of_the_file_name(name: str, names: bool) -> None:
    assert names_attempt(f"{TABLE}/{name}", ATTEMPT) is names
    if names:
        assert attempt_named(f"{TABLE}/{name}") == ATTEMPT


@given(name=st.text("0af-/x", max_size=40).map(lambda text: text.replace("x", ATTEMPT)))
def test_a_path_names_one_attempt_at_most(name: str) -> None:
    found = attempt_named(name)
    tail = name[name.rfind("/") + 1 :]
    uuids = [tail[at : at + 36] for at in range(len(tail) - 35) if _is_uuid(tail[at : at + 36])]
    assert found == (uuids[-1] if uuids else None)
    for one in {ATTEMPT, *uuids}:
        assert names_attempt(name, one) is (one == found)


def _is_uuid(text: str) -> bool:
    dashes = [at for at, character in enumerate(text) if character == "-"]
    return dashes == [8, 13, 18, 23] and set(text) <= set("0123456789abcdef-")


# --- All paths of a request at once --------------------------------------------------------------

WITH_METADATA = AllowedPlaces((f"{TABLE}/", "s3://data/flights/"), (f"{TABLE}/metadata/",))
NAMED = "00000-0-3f2504e0-4f89-41d3-9a0c-0305e82c3301-00001.parquet"
USUAL = [f"{TABLE}/data/day={day}/{NAMED}" for day in range(3)]


def test_the_names_of_usual_paths_are_found_at_once() -> None:
    assert WITH_METADATA.plain_names(USUAL) == [NAMED] * 3
    assert WITH_METADATA.plain_names([f"s3://data/flights/{NAMED}"]) == [NAMED]


@pytest.mark.parametrize(
    "odd",
    [
        # As many lines are plain as there are paths.
        f"{TABLE}/data/a.parquet\n{TABLE}/data/b.parquet",
        f"{TABLE}/data/a.parquet\n",
        f"\n{TABLE}/data/a.parquet",
        "",
        f"{TABLE}/metadata/{NAMED}",
        f"{TABLE}/data/" + "x" * 300,
        f"{TABLE}/data/%41.parquet",
        f"{TABLE}/data/日本.parquet",
        *REFUSED,
    ],
)
def test_an_unusual_path_is_left_to_be_looked_at_by_itself(odd: str) -> None:
    for paths in ([odd], [odd, *USUAL], [*USUAL, odd], [*USUAL, odd, "elsewhere"]):
        assert WITH_METADATA.plain_names(paths) is None


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [f"{TABLE}/", "data", "metadata", "/", "\n", "%", ".", "x", "é", NAMED]
            ),
            max_size=6,
        ).map("".join),
        min_size=1,
        max_size=4,
    )
)
def test_plain_paths_are_allowed_each_by_itself(paths: list[str]) -> None:
    names = WITH_METADATA.plain_names(paths)
    if names is not None:
        assert [WITH_METADATA.data_refusal(path) for path in paths] == [None] * len(paths)
        assert names == [path[path.rfind("/") + 1 :] for path in paths]


@given(
    st.lists(
        st.lists(st.sampled_from([ATTEMPT, OTHER, "-", "x.parquet", "0" * 20]), max_size=4).map(
            "".join
        ),
        min_size=1,
        max_size=3,
    )
)
def test_names_that_together_name_the_attempt_do_so_each(names: list[str]) -> None:
    if all_name_attempt(names, ATTEMPT):
        assert all(names_attempt(f"{TABLE}/data/{name}", ATTEMPT) for name in names)


def test_one_name_without_the_attempt_is_noticed() -> None:
    good = f"0-{ATTEMPT}.parquet"
    assert all_name_attempt([good, good], ATTEMPT)
    for bad in ("", "x", f"0-{OTHER}.parquet", f"{ATTEMPT}-{OTHER}.parquet", ATTEMPT.upper()):
        assert not all_name_attempt([good, bad], ATTEMPT)
        assert not all_name_attempt([bad, good], ATTEMPT)
