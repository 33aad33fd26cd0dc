"""Where a write lands: its options, the session's confs and the table's property together."""

from __future__ import annotations

import pytest

from committer.errors import SettingsError
from workers.settings.options import parse_options
from workers.settings.wap import (
    NO_SESSION_WAP,
    NO_WAP_OPTIONS,
    TO_MAIN,
    Destination,
    SessionWap,
    UnnamedState,
    WapOptions,
    choose_destination,
    wap_options,
)

ENABLED = {"write.wap.enabled": "true"}
BY_ID, BY_BRANCH = SessionWap("load-1"), SessionWap(branch="audit")
ON_AUDIT = Destination("audit", create_branch=True)


def staged(wap_id: str | None = None, branch: str = "main") -> Destination:
    return Destination(branch, stage_only=True, wap_id=wap_id)


@pytest.mark.parametrize(
    ("branch", "options", "session", "expected"),
    [
        (None, NO_WAP_OPTIONS, NO_SESSION_WAP, TO_MAIN),
        ("dev", NO_WAP_OPTIONS, NO_SESSION_WAP, Destination("dev")),
        (None, NO_WAP_OPTIONS, BY_ID, staged("load-1")),
        ("dev", NO_WAP_OPTIONS, BY_ID, staged("load-1", "dev")),
        (None, NO_WAP_OPTIONS, BY_BRANCH, ON_AUDIT),
        (None, NO_WAP_OPTIONS, SessionWap(branch="main"), TO_MAIN),
        # An option counts more than a conf.
        ("dev", NO_WAP_OPTIONS, BY_BRANCH, Destination("dev")),
        ("main", NO_WAP_OPTIONS, BY_BRANCH, TO_MAIN),
        (None, WapOptions("other"), BY_ID, staged("other")),
        (None, WapOptions(stage_only=True), BY_ID, staged("load-1")),
        (None, WapOptions(stage_only=False), BY_ID, TO_MAIN),
        (None, WapOptions(stage_only=False), BY_BRANCH, ON_AUDIT),
        (None, WapOptions("load-1"), NO_SESSION_WAP, staged("load-1")),
        (None, WapOptions(stage_only=True), NO_SESSION_WAP, staged()),
        ("dev", WapOptions("load-1"), BY_BRANCH, staged("load-1", "dev")),
    ],
)
def test_options_count_more_than_confs(
    branch: str | None, options: WapOptions, session: SessionWap, expected: Destination
) -> None:
    assert choose_destination(branch, options, session, ENABLED) == expected


@pytest.mark.parametrize("properties", [{}, {"write.wap.enabled": "false"}])
def test_confs_count_only_where_the_table_says_so(properties: dict[str, str]) -> None:
    both = SessionWap("load-1", "audit")
    for session in (BY_ID, BY_BRANCH, both):
        assert choose_destination(None, NO_WAP_OPTIONS, session, properties) == TO_MAIN
    assert choose_destination(None, WapOptions("w"), both, properties) == staged("w")


@pytest.mark.parametrize(
    ("options", "session", "message"),
    [
        (NO_WAP_OPTIONS, SessionWap("load-1", "audit"), r"`spark.wap.id` \(`load-1`\) and"),
        (WapOptions("w"), BY_BRANCH, "option `wap-id` stages rows, and .* branch `audit`"),
        (WapOptions(stage_only=True), BY_BRANCH, "option `stage-only` stages rows"),
        (WapOptions("w" * 256), NO_SESSION_WAP, "expected at most 255 printable characters"),
        (NO_WAP_OPTIONS, SessionWap(branch="a\nb"), "expected at most 255 printable characters"),
    ],
)
def test_what_excludes_each_other_is_refused(
    options: WapOptions, session: SessionWap, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        choose_destination(None, options, session, ENABLED)


def test_options_are_spelled_as_options_and_as_arguments() -> None:
    assert wap_options({"wap-id": "w"}) == wap_options({"wap_id": "w"}) == WapOptions("w")
    assert wap_options({"stage-only": "true"}) == wap_options({"stage_only": "True"})
    assert wap_options({}) == NO_WAP_OPTIONS
    parsed = parse_options({"table": "db.t", "Stage-Only": "true"}, streaming=True)
    assert (parsed.wap, parsed.branch) == (WapOptions(stage_only=True), None)
    with pytest.raises(SettingsError, match="a snapshot with an id is staged"):
        wap_options({"wap-id": "w", "stage-only": "false"})
    with pytest.raises(SettingsError, match="option `stage-only`: expected `false` or `true`"):
        wap_options({"stage-only": "yes"})


def test_empty_confs_are_none() -> None:
    found = {"spark.wap.id": "", "spark.wap.branch": "audit"}
    assert SessionWap.of(found.get) == BY_BRANCH


def test_a_read_of_main_is_refused_where_the_session_means_another_branch() -> None:
    state = UnnamedState("db.t", frozenset({"audit"}))
    for session in (NO_SESSION_WAP, BY_ID, SessionWap(branch="absent")):
        state.check(session)
    with pytest.raises(SettingsError, match=r'option\("branch", "audit"\) or option\("branch", "m'):
        state.check(BY_BRANCH)
