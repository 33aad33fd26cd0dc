from __future__ import annotations

import traceback

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
