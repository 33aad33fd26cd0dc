"""The order of the requests of a table, and each producer's part of a look."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from committer.plan.scheduling.ready_requests import ReadyRequests


@dataclass(frozen=True)
class Request:
    key: str
    ends_look: bool = False
    weight_bytes: int = 10

    @property
    def folder(self) -> str:
        return "/".join(self.key.split("/")[:2])


def named(name: str, *, ends_look: bool = False) -> Request:
    """Return a request: `a1` is one of producer `a`."""
    return Request(f"table/{name[0]}/{name[1:]}/attempt", ends_look)


def filled(*names: str) -> ReadyRequests[Request]:
    ready = ReadyRequests[Request]()
    for name in names:
        request = named(name.rstrip("!"), ends_look=name.endswith("!"))
        ready[request.key] = request
    return ready


def look(ready: ReadyRequests[Request], count_max: int, of_producer_max: int) -> list[str]:
    requests = ready.look(count_max, of_producer_max=of_producer_max)
    return ["".join(request.key.split("/")[1:3]) for request in requests]


def test_a_look_has_so_many_of_each_producer_in_the_order_of_arrival() -> None:
    ready = filled("a1", "a2", "a3", "b1", "a4", "c1", "b2")
    assert look(ready, 100, 100) == ["a1", "a2", "a3", "b1", "a4", "c1", "b2"]
    assert look(ready, 100, 2) == ["a1", "a2", "b1", "c1", "b2"]
    assert look(ready, 4, 100) == ["a1", "b1", "c1", "b2"]
    assert look(ready, 5, 100) == ["a1", "a2", "b1", "c1", "b2"]


def test_a_look_ends_with_the_first_request_that_changes_the_table() -> None:
    ready = filled("a1", "b1", "c1!", "a2", "d1!", "b2")
    assert look(ready, 100, 100) == ["a1", "b1", "c1"]
    del ready[named("c1").key]
    assert look(ready, 100, 100) == ["a1", "b1", "a2", "d1"]
    # Where it is not reached itself, none after it is either.
    ready = filled("a1", "a2", "a3!", "b1")
    assert look(ready, 100, 2) == ["a1", "a2"]


def test_requests_that_are_put_first_come_before_all_others_of_their_producer_too() -> None:
    ready = filled("a1", "b1", "a2", "b2")
    ready.put_first({key: ready[key] for key in (named("b2").key, named("a2").key)})
    assert [*ready] == [named(name).key for name in ("b2", "a2", "a1", "b1")]
    assert look(ready, 100, 1) == ["b2", "a2"]
    ready[named("c1").key] = named("c1")
    assert look(ready, 3, 100) == ["b2", "a2", "c1"]


def test_a_look_that_is_too_short_for_all_producers_has_the_oldest() -> None:
    ready = filled("a1", "a2", "b1", "c1")
    assert look(ready, 2, 100) == ["a1", "b1"]
    ready.put_first({key: ready[key] for key in (named("c1").key,)})
    assert look(ready, 1, 100) == ["c1"]


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9), st.integers(0, 5))),
    st.integers(1, 12),
    st.integers(1, 6),
)
def test_a_look_is_fair_and_what_a_producer_has_is_counted(
    steps: list[tuple[str, int, int]], count_max: int, of_producer_max: int
) -> None:
    ready, model = ReadyRequests[Request](), dict[str, Request]()
    for producer, number, step in steps:
        request = named(f"{producer}{number}", ends_look=step == 5)
        if step in (0, 1):
            assert ready.pop(request.key, None) == model.pop(request.key, None)
        elif step == 2 and request.key in model:
            first: dict[str, Request] = {request.key: model.pop(request.key)}
            ready.put_first(first)
            model = {**first, **model}
        else:
            model.pop(request.key, None)
            ready[request.key] = model[request.key] = request
    assert dict(ready) == model and [*ready] == [*model]
    for producer in "abcd":
        count = sum(key.split("/")[1] == producer for key in model)
        assert ready.of_producer(f"table/{producer}") == (count, 10 * count)
    eligible: list[Request] = []
    for request in model.values():
        eligible.append(request)
        if request.ends_look:
            break
    chosen = ready.look(count_max, of_producer_max=of_producer_max)
    assert chosen == [request for request in eligible if request in chosen]
    assert len(chosen) <= count_max
    parts = {
        producer: [one for one in eligible if one.folder == f"table/{producer}"]
        for producer in "abcd"
    }
    taken = {producer: [one for one in part if one in chosen] for producer, part in parts.items()}
    for producer, part in parts.items():
        assert taken[producer] == part[: len(taken[producer])]
        if len(taken[producer]) < min(len(part), of_producer_max):
            # It has at most one less than any other, and the look is full.
            assert len(taken[producer]) + 1 >= max(map(len, taken.values()))
            assert len(chosen) == count_max
