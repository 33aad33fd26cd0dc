from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest

from committer.errors import NotFoundError, PublishError
from workers.spark.message_first import message_first


def refuse() -> None:
    raise PublishError("table `db.t`: no")


def test_the_sentence_of_an_error_is_the_first_line_and_its_place_follows() -> None:
    with pytest.raises(RuntimeError) as caught, message_first():
        refuse()
    caught.value.__cause__ = None  # as Spark does
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert lines[0] == "committer.errors.PublishError: table `db.t`: no"
    assert any(line.endswith("in refuse") for line in lines[1:])


def test_an_error_of_others_stays_as_it_is() -> None:
    with pytest.raises(KeyError) as caught, message_first():
        raise KeyError("theirs")
    assert caught.value.__context__ is None


def test_an_error_that_was_made_of_another_of_ours_comes_first_too() -> None:
    with pytest.raises(RuntimeError) as caught, message_first():
        try:
            refuse()
        except PublishError as error:
            raise NotFoundError(f"nothing written: {error}") from error
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert lines[0] == "committer.errors.NotFoundError: nothing written: table `db.t`: no"


SAID = "column a holds a value that is no int"


def misread() -> None:
    raise ValueError("3000000000 is out of range")


def explicit() -> None:
    try:
        misread()
    except ValueError as error:
        raise PublishError(SAID) from error


def implicit() -> None:
    try:
        misread()
    except ValueError:
        raise PublishError(SAID)  # noqa: B904  # as it may happen


def nested() -> None:
    try:
        explicit()
    except PublishError as error:
        raise PublishError(f"{error}: nothing was written") from error


@pytest.mark.parametrize("fail", [explicit, implicit, nested])
def test_an_error_that_was_made_of_one_of_others_comes_first_and_theirs_last(
    fail: Callable[[], None],
) -> None:
    with pytest.raises(RuntimeError) as caught, message_first():
        fail()
    caught.value.__cause__ = None  # as Spark does
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert lines[0].startswith(f"committer.errors.PublishError: {SAID}")
    assert lines[-1] == "ValueError: 3000000000 is out of range"
    assert any(line.endswith("in misread") for line in lines)


def test_an_error_that_hides_where_it_comes_from_says_nothing_of_it() -> None:
    with pytest.raises(RuntimeError) as caught, message_first():
        try:
            misread()
        except ValueError:
            raise PublishError(SAID) from None
    text = "".join(traceback.format_exception(caught.value))
    assert text.startswith(f"committer.errors.PublishError: {SAID}")
    assert "out of range" not in text
