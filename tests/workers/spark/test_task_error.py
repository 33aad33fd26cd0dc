"""The error of a job is found in what Spark says of it."""

from __future__ import annotations

import pytest

from committer.errors import PublishError, SettingsError
from workers.spark.task_error import own_error, task_error

TASK = """
  An exception was thrown from the Python worker. Please see the stack trace below.
committer.errors.PublishError: 2 columns do not fit the table:
  id: found string, expected long
  extra: found int, expected no such column

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "x.py", line 1, in write
workers.spark.message_first._MessageFirst: frazil: the first line says what is wrong
"""
LAST = """Traceback (most recent call last):
  File "x.py", line 1, in write
committer.errors.SettingsError: option `wait`: expected `durable`
"""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            TASK,
            PublishError(
                "2 columns do not fit the table:\n  id: found string, expected long\n"
                "  extra: found int, expected no such column"
            ),
        ),
        (LAST, SettingsError("option `wait`: expected `durable`")),
    ],
)
def test_an_error_of_ours_is_in_its_own_words(text: str, error: Exception) -> None:
    found = own_error(RuntimeError(text))
    assert (type(found), str(found)) == (type(error), str(error))


@pytest.mark.parametrize("text", ["ValueError: no", "committer.errors.Nothing: no", "re: no"])
def test_an_error_of_others_is_none_of_ours(text: str) -> None:
    assert own_error(RuntimeError(text)) is None


def test_the_last_line_of_a_traceback_says_what_is_wrong() -> None:
    said = task_error(RuntimeError(LAST))
    assert said == "RuntimeError: committer.errors.SettingsError: option `wait`: expected `durable`"
