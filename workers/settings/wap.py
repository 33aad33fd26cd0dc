"""Write, audit, publish: where the rows of a write land that are looked at before readers see them.

Options of the write count more than the session's confs, which count only for a table with
`write.wap.enabled=true`. Values only: nothing is looked up. Source: Iceberg Java, `SparkWriteConf`,
`SparkTableUtil.determineWriteBranch` and `determineReadBranch`; `wap-id` and `stage-only` are
Frazil's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from committer.errors import SettingsError
from committer.iceberg.metadata.property_values import is_true
from committer.iceberg.metadata.snapshot import MAIN, WAP_ID
from workers.settings.option_values import flag

ENABLED = "write.wap.enabled"
ID_CONF, BRANCH_CONF = "spark.wap.id", "spark.wap.branch"
_ID, _STAGE = "wap-id", "stage-only"
# Arguments of a call in Python are spelled with underscores.
_ARGUMENTS = {"wap_id": _ID, "stage_only": _STAGE}
WAP_OPTIONS = frozenset({_ID, _STAGE, *_ARGUMENTS})
_NAME_CHARACTERS_MAX = 255


@dataclass(frozen=True, slots=True)
class WapOptions:
    """The options of a write. `stage_only`: None where they do not say."""

    wap_id: str | None = None
    stage_only: bool | None = None


NO_WAP_OPTIONS = WapOptions()


@dataclass(frozen=True, slots=True)
class SessionWap:
    """The confs of a session; None: not set."""

    wap_id: str | None = None
    branch: str | None = None

    @classmethod
    def of(cls, conf: Callable[[str], str | None]) -> Self:
        """Read the confs. `conf` returns one by its name, None where it is not set."""
        return cls(conf(ID_CONF) or None, conf(BRANCH_CONF) or None)

    @classmethod
    def of_session(cls, spark: Any) -> Self:
        """Read the confs of a session on the driver."""
        return cls.of(lambda conf: spark.conf.get(conf, None))


NO_SESSION_WAP = SessionWap()


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a write lands. `create_branch`: a branch that is not there begins at the head of main;
    `stage_only`: its snapshot gets no ref, and `wap_id` is the name to publish it by."""

    branch: str = MAIN
    create_branch: bool = False
    stage_only: bool = False
    wap_id: str | None = None

    @property
    def summary(self) -> dict[str, str]:
        """The entries of the snapshot's summary."""
        return {} if self.wap_id is None else {WAP_ID: self.wap_id}


TO_MAIN = Destination()


def wap_options(given: Mapping[str, str]) -> WapOptions:
    """Read the options of a write, by their names in lower case.
    Errors: `SettingsError` naming the option."""
    named = {_ARGUMENTS.get(name, name): value for name, value in given.items()}
    wap_id = named.get(_ID) or None
    stage_only = flag(named, _STAGE) if _STAGE in named else None
    if wap_id is not None and stage_only is False:
        raise SettingsError(f"options `{_ID}` and `{_STAGE}`: a snapshot with an id is staged")
    return WapOptions(wap_id, stage_only)


def is_wap_enabled(properties: Mapping[str, str]) -> bool:
    """Return whether a table heeds the session's confs."""
    return is_true(properties, ENABLED, default=False)


def choose_destination(
    branch: str | None, options: WapOptions, session: SessionWap, properties: Mapping[str, str]
) -> Destination:
    """Return where a write lands. `branch`: of its options, None where they name none;
    `properties`: of the table. Errors: `SettingsError` for options and confs that exclude each
    other."""
    confs = session if is_wap_enabled(properties) else NO_SESSION_WAP
    if confs.wap_id is not None and confs.branch is not None:
        raise SettingsError(
            f"the session's confs `{ID_CONF}` (`{confs.wap_id}`) and `{BRANCH_CONF}`"
            f" (`{confs.branch}`) exclude each other: rows are staged by the id, or land on the"
            " branch. Unset one of them: spark.conf.unset(...)"
        )
    wap_id = options.wap_id or confs.wap_id
    stages = wap_id is not None if options.stage_only is None else options.stage_only
    if stages:
        if branch is None and confs.branch is not None:
            raise SettingsError(
                f"option `{_ID if options.wap_id else _STAGE}` stages rows, and the session's conf"
                f" `{BRANCH_CONF}` sends them to branch `{confs.branch}`: unset the conf, or name"
                ' the branch that they are staged for: option("branch", ...)'
            )
        name = None if wap_id is None else _name(wap_id)
        return Destination(branch or MAIN, stage_only=True, wap_id=name)
    if branch is None and confs.branch is not None:
        return Destination(_name(confs.branch), create_branch=confs.branch != MAIN)
    return Destination(branch or MAIN)


def _name(name: str) -> str:
    """Refuse a name that no request can have, before rows are written."""
    if len(name) > _NAME_CHARACTERS_MAX or not name.isprintable():
        raise SettingsError(
            f"`{name[:40]}` (option `{_ID}`, conf `{ID_CONF}` or `{BRANCH_CONF}`): expected at most"
            f" {_NAME_CHARACTERS_MAX} printable characters"
        )
    return name


def refuse_staged_columns(place: Destination, table: str) -> None:
    """Refuse a staged append that brings columns along. Errors: `SettingsError`."""
    if place.stage_only:
        raise SettingsError(
            f"rows for table `{table}` with columns that it lacks cannot be staged (`{ID_CONF}`,"
            f" options `{_ID}`, `{_STAGE}`): add the columns first (`frazil table evolve`)"
        )


def refuse_staged_stream(place: Destination, table: str) -> None:
    """Refuse the upserts of a stream that stages. Errors: `SettingsError`."""
    if place.stage_only:
        raise SettingsError(
            f"a streaming upsert into table `{table}` cannot be staged (`{ID_CONF}`, options"
            f" `{_ID}`, `{_STAGE}`): of staged snapshots that replace rows only one could be"
            f" published. Let it land on a branch: conf `{BRANCH_CONF}`, or option `branch`"
        )


# --- Reads ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnnamedState:
    """A read that names no state of a table whose writes are audited. `branches`: those that the
    session's conf may mean."""

    table: str
    branches: frozenset[str]

    def check(self, session: SessionWap) -> None:
        """Refuse a read of main where Iceberg would read the session's branch, as a data source in
        Python learns the session's confs in its tasks only. Errors: `SettingsError`."""
        if session.branch is not None and session.branch in self.branches:
            raise SettingsError(
                f"table `{self.table}` has branch `{session.branch}`, which the session's conf"
                f" `{BRANCH_CONF}` names, and this read names no state of the table: say what it"
                f' reads: option("branch", "{session.branch}") or option("branch", "{MAIN}")'
            )
