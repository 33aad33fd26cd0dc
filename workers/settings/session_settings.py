"""The settings that `frazil.spark.configure` gave to a running session, for calls of this process.

The writers of a session get them with its data source; a call that asks the catalog itself, such as
`create_table`, finds them here. On a builder they are variables of the process instead.
"""

from __future__ import annotations

from collections.abc import Mapping

_given: dict[str, str] = {}


def remember_settings(settings: Mapping[str, str]) -> None:
    """Keep the settings of the session that was configured last."""
    _given.clear()
    _given.update(settings)


def with_session_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options, and the session's settings that they do not name."""
    return {**_given, **{name.lower(): value for name, value in options.items()}}
