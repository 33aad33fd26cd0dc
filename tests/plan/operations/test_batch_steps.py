"""Which requests of a batch share a snapshot, and in which order they land."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.schema import print_schema
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.plan.operations.batch_steps import by_epoch, cut, of_one_swap
from committer.request.alterations import UnionByName
from tests.plan.branches import Branch, data_file, equality_delete, position_delete
from tests.support.builders.flights import build_flights
from tests.support.builders.operation_requests import build_operation
from tests.support.builders.request_builders import build_request, changed_line

TABLE = build_flights()
BRANCH = Branch.build()
_NEEDS: dict[str, dict[str, object]] = {
    "overwrite": {"row-filter": True},
    "rewrite-files": {"removed-data-files": ["x"], "base-sequence-number": 1},
}
CHECKED = {"base-sequence-number": 1, "isolation-level": "serializable"}


def append(name: str, epoch: int = 0, **line: object) -> CheckedRequest:
    metadata = TABLE.metadata
    checker = Checker(CheckBasis.of("frazil", metadata), metadata.current_schema)
    sealed = build_request(TABLE, producer=name, epoch=epoch, partition=("AA",))
    checked = checker.check(sealed)
    assert isinstance(checked, CheckedRequest)
    return replace(checked, sealed=replace(sealed, request=changed_line(sealed.request, **line)))


def operation(
    name: str,
    kind: str,
    *files: DataFile,
    needs: dict[str, object] | None = None,
    epoch: int = 0,
    summary: dict[str, str] | None = None,
) -> CheckedRequest:
    sealed = build_operation(
        TABLE,
        kind,
        producer=name,
        epoch=epoch,
        needs={**_NEEDS.get(kind, {}), **(needs or {})},
        files_count=1,
        partition=("AA",),
        summary=summary,
    )
    bare = sealed.request.model_copy(update={"manifests": ()})
    known = append(name)
    return replace(known, sealed=replace(sealed, request=bare), manifests=BRANCH.added(*files))


def positions(name: str, **more: object) -> CheckedRequest:
    return operation(name, "row-delta", position_delete(name), **more)  # type: ignore[arg-type]


def upsert(name: str, epoch: int = 0) -> CheckedRequest:
    return operation(
        name, "row-delta", data_file(name), equality_delete(f"{name}-d", ids=(1, 2)), epoch=epoch
    )


def names(*requests: CheckedRequest) -> list[str]:
    """Return the producers of each step, with the epochs above 0."""
    steps = cut(requests)
    assert sorted(map(id, requests)) == sorted(id(one) for step in steps for one in step)
    return ["".join(_name(one) for one in step) for step in steps]


def _name(one: CheckedRequest) -> str:
    return one.request.producer.id + (str(one.request.epoch) if one.request.epoch else "")


def test_appends_share_one_step_in_the_order_of_their_arrival() -> None:
    requests = (append("a", 3), append("b"), append("a", 1))
    assert cut(requests) == (requests,)
    assert cut(()) == ()


def test_operations_have_a_step_each_in_the_order_of_their_arrival() -> None:
    assert names(
        append("a"), operation("o", "overwrite"), upsert("u"), append("b"), append("c")
    ) == ["a", "o", "u", "bc"]


def test_those_of_one_producer_land_by_epoch_in_the_places_that_they_have() -> None:
    assert names(upsert("u", 5), append("a"), upsert("u", 3)) == ["u3", "a", "u5"]


def test_attempts_at_one_epoch_keep_the_order_of_their_arrival() -> None:
    first, second, lower = append("u", 5), append("u", 5), append("u", 3)
    assert by_epoch([first, second, lower]) == [lower, first, second]


@pytest.mark.parametrize(
    ("between", "is_joined"),
    [
        (positions("p"), True),
        (operation("r", "rewrite-files"), True),
        (upsert("u"), False),
        (positions("p", needs=CHECKED), False),
        (operation("o", "overwrite"), False),
        (operation("b", "rewrite-files"), False),
    ],
)
def test_an_append_joins_others_behind_what_new_files_are_nothing_to(
    between: CheckedRequest, is_joined: bool
) -> None:
    name = between.request.producer.id
    expected = ["ab1", name] if is_joined else ["a", name, "b1"]
    assert names(append("a"), between, append("b", 1)) == expected


def test_appends_that_say_something_else_of_themselves_have_their_own_snapshot() -> None:
    said = append("b", summary={"app": "1"})
    assert names(append("a"), said, append("c"), append("d", summary={"app": "1"})) == ["ac", "bd"]


def test_adopted_files_have_a_step_of_their_own() -> None:
    adopts = append("b", adopt_existing=True)
    assert names(append("a"), adopts, append("c", adopt_existing=True)) == ["a", "b", "c"]


def test_deletes_of_positions_share_a_step() -> None:
    assert names(positions("p"), positions("q"), append("a"), positions("r")) == ["pq", "a", "r"]
    with_data = operation("q", "row-delta", position_delete("q"), data_file("x"))
    with_data = replace(
        with_data,
        sealed=replace(
            with_data.sealed, request=with_data.request.model_copy(update={"files": ({},)})
        ),
    )
    assert names(positions("p"), with_data) == ["p", "q"]


def test_two_that_replace_one_deletion_vector_do_not_share_a_step() -> None:
    vector = {"file-path": "x", "content-offset": 4, "content-size-in-bytes": 40}
    other = {**vector, "content-offset": 44}
    first, same, apart = (
        positions(name, needs={"removed-delete-files": [one]})
        for name, one in (("p", vector), ("q", vector), ("r", other))
    )
    assert names(first, same) == ["p", "q"]
    assert names(first, apart) == ["pr"]


def test_what_may_leave_the_branch_where_it_is_is_alone_in_its_swap() -> None:
    staged = append("s", stage_only=True)
    steps = cut((append("a"), operation("o", "overwrite"), staged, append("b")))
    assert len(steps) == 4
    assert of_one_swap(steps, has_several_snapshots=True) == steps[:2]
    assert of_one_swap(steps[2:], has_several_snapshots=True) == steps[2:3]
    assert of_one_swap(steps, has_several_snapshots=False) == steps[:1]
    assert of_one_swap((), has_several_snapshots=True) == ()


def test_deletes_that_bring_columns_have_a_step_of_their_own() -> None:
    brings = positions("q")
    union = UnionByName.model_validate(
        {
            "action": "union-by-name",
            "schema": print_schema(TABLE.metadata.current_schema),
            "with-ids": True,
        }
    )
    request = changed_line(brings.request, changes=(union,))
    brings = replace(brings, sealed=replace(brings.sealed, request=request))
    assert names(positions("p"), brings, positions("r")) == ["p", "q", "r"]
