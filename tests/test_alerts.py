"""Each alert rule fires where it should and nowhere else, as promtool evaluates it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from committer.service.telemetry.metrics import Metrics
from tests.support.builders.jars import NotHereError
from tests.support.builders.programs import promtool

pytestmark = [pytest.mark.server, pytest.mark.timeout(1_800)]

ROOT = Path(__file__).parent.parent
ALERTS = ROOT / "deploy/prometheus/alerts.yaml"
# Ten times what a busy machine needs: it bounds hangs.
PROMTOOL_S_MAX = 600.0
# Installation `one` has two committers, `two` one; Prometheus scrapes all three by one job.
INBOXES = {"a": "s3://one/requests", "b": "s3://one/requests", "c": "s3://two/requests"}
ONE, TWO = {"job": "frazil", "inbox": INBOXES["a"]}, {"job": "frazil", "inbox": INBOXES["c"]}

Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class Fired:
    """An alert that fires. `summary`: as it is read."""

    labels: Labels
    summary: str


@dataclass(frozen=True, slots=True)
class Case:
    """Series of metrics by the instance that shows them, and the alerts of one rule at a time.

    `series`: by name with labels, the values from minute 0 on, in promtool's notation. `gone`: the
    instances that do not answer from minute 10 on.
    """

    alert: str
    at: str
    fired: list[Fired]
    series: dict[tuple[str, str], str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()


def _lag(cause: str, table: str = "") -> str:
    name = "frazil_table_lag_seconds" if table else "frazil_lag_seconds"
    labels = f'cause="{cause}"' + (f',table="{table}"' if table else "")
    return f"{name}{{{labels}}}"


def _swaps(answer: str) -> str:
    return f'frazil_swap_answers_total{{table="db.t",answer="{answer}"}}'


HEALTHY = "0x120"
TABLE: Labels = {"table": "db.t"}
CASES = [
    # --- Committers ---
    Case("FrazilDown", "30m", []),
    Case(
        "FrazilDown",
        "30m",
        [Fired(TWO, "No committer says how long requests wait in s3://two/requests.")],
        gone=("c",),
    ),
    Case(
        "FrazilDown",
        "30m",
        [
            Fired({"cause": "waiting"}, "No committer says how long requests wait."),
            *(
                Fired(labels, f"No committer says how long requests wait in {labels['inbox']}.")
                for labels in (ONE, TWO)
            ),
        ],
        gone=("a", "b", "c"),
    ),
    Case("FrazilDown", "30m", [], gone=("b",)),
    Case("FrazilReplicaDown", "30m", []),
    Case(
        "FrazilReplicaDown",
        "30m",
        [Fired({"job": "frazil", "instance": "b"}, "b does not answer Prometheus.")],
        gone=("b",),
    ),
    Case("FrazilShardsUnowned", "30m", []),
    Case(
        "FrazilShardsUnowned",
        "30m",
        [Fired(ONE, "The committers of s3://one/requests own 33 of 64 shards.")],
        series={("a", "frazil_shards"): "20x120", ("b", "frazil_shards"): "13x120"},
    ),
    Case("FrazilForeignCommitter", "30m", []),
    Case(
        "FrazilForeignCommitter",
        "30m",
        [Fired(ONE, "3 committers share the shards of s3://one/requests, more than serve it.")],
        series={("b", "frazil_members"): "3x120"},
    ),
    # --- Lag ---
    Case("FrazilLagging", "30m", [], {("a", _lag("waiting", "db.t")): "60x120"}),
    Case("FrazilLagging", "1m", [], {("a", _lag("waiting", "db.t")): "61x120"}),
    Case(
        "FrazilLagging",
        "30m",
        [],
        {("a", _lag("held", "db.t")): "942x120", ("a", _lag("unavailable", "db.t")): "942x120"},
    ),
    Case(
        "FrazilLagging",
        "30m",
        [
            Fired(ONE | TABLE, "A request of db.t has waited 1m 10s for its commit."),
            Fired(TWO | TABLE, "A request of db.t has waited 1m 20s for its commit."),
        ],
        {
            ("a", _lag("waiting", "db.t")): "70x120",
            ("b", _lag("waiting", "db.t")): HEALTHY,
            ("c", _lag("waiting", "db.t")): "80x120",
        },
    ),
    Case("FrazilStalled", "30m", [], {("a", _lag("waiting", "db.t")): "899x120"}),
    Case("FrazilStalled", "30m", [], {("a", _lag("held", "db.t")): "5000x120"}),
    Case(
        "FrazilStalled",
        "30m",
        [Fired(ONE | TABLE, "A request of db.t has waited 16m 40s for its commit.")],
        {("a", _lag("waiting", "db.t")): "1000x120"},
    ),
    Case("FrazilUnavailable", "30m", [], {("a", _lag("unavailable")): "899x120"}),
    Case(
        "FrazilUnavailable",
        "30m",
        [Fired(ONE, "A request has waited 16m 40s for what does not answer.")],
        {("a", _lag("unavailable")): "1000x120", ("b", _lag("unavailable")): HEALTHY},
    ),
    Case("FrazilHeldLong", "30m", [], {("a", _lag("held", "db.t")): "172799x120"}),
    Case(
        "FrazilHeldLong",
        "30m",
        [Fired(ONE | TABLE, "A request of db.t has been held for 2d 0h 0m 1s.")],
        {("a", _lag("held", "db.t")): "172801x120"},
    ),
    Case(
        "FrazilInboxNotListed",
        "30m",
        [Fired({"job": "frazil", "instance": "b"}, "b listed the inbox last 20m 0s ago.")],
        {("b", "frazil_inbox_listed_timestamp_seconds"): "600x120"},
    ),
    Case("FrazilInboxNotListed", "30m", []),
    # --- Quarantine and producers ---
    Case(
        "FrazilQuarantine",
        "30m",
        [
            Fired(
                ONE | {"reason": "r", **TABLE},
                "7 requests for table db.t are in quarantine: r.",
            )
        ],
        {
            ("a", 'frazil_quarantine_requests{reason="r",table="db.t"}'): "7x120",
            ("b", 'frazil_quarantine_requests{reason="r",table="db.t"}'): "7x120",
            ("c", 'frazil_quarantine_requests{reason="r",table="db.t"}'): HEALTHY,
        },
    ),
    Case(
        "FrazilQuarantineOld",
        "30m",
        [Fired(ONE, "A request has been in quarantine for 2d 0h 0m 1s.")],
        {
            ("a", "frazil_quarantine_age_seconds"): "172801x120",
            ("c", "frazil_quarantine_age_seconds"): "172800x120",
        },
    ),
    Case(
        "FrazilQuarantineLarge",
        "30m",
        [
            Fired(ONE, "The quarantine has grown to 1.2k requests, or bytes."),
            Fired(TWO, "The quarantine has grown to 2G requests, or bytes."),
        ],
        {
            ("a", 'frazil_quarantine_requests{reason="r"}'): "600x120",
            ("a", 'frazil_quarantine_requests{reason="s"}'): "600x120",
            ("b", 'frazil_quarantine_requests{reason="s"}'): "600x120",
            ("a", "frazil_quarantine_bytes"): "5x120",
            ("c", 'frazil_quarantine_requests{reason="s"}'): "1000x120",
            ("c", "frazil_quarantine_bytes"): "2000000000x120",
        },
    ),
    Case(
        "FrazilBreakerOpen",
        "30m",
        [
            Fired(
                ONE,
                "3 producers have an open circuit breaker: their last requests all went to"
                " quarantine.",
            )
        ],
        {("a", "frazil_open_breakers"): "1x120", ("b", "frazil_open_breakers"): "2x120"},
    ),
    Case(
        "FrazilBreakerOpen",
        "14m",
        [],
        {("a", "frazil_open_breakers"): "0x10 1x120"},
    ),
    Case(
        "FrazilTableFrozen",
        "30m",
        [Fired(ONE | TABLE, "db.t lacks commits that it had; no request lands.")],
        {
            ("a", 'frazil_table_frozen{table="db.t"}'): "1x120",
            ("c", 'frazil_table_frozen{table="db.t"}'): HEALTHY,
        },
    ),
    Case(
        "FrazilProducerFrozen",
        "30m",
        [Fired(TWO | TABLE, "2 producers of db.t are frozen.")],
        {
            ("a", 'frazil_frozen_producers{table="db.t"}'): HEALTHY,
            ("c", 'frazil_frozen_producers{table="db.t"}'): "2x120",
        },
    ),
    # --- Conditions ---
    Case(
        "FrazilComponentDegraded",
        "30m",
        [Fired(ONE | {"component": "catalog"}, "catalog has been degraded for five minutes.")],
        {
            ("a", 'frazil_component_degraded{component="catalog"}'): "1x120",
            ("b", 'frazil_component_degraded{component="catalog"}'): "1x120",
            ("c", 'frazil_component_degraded{component="table",table="db.t"}'): "1x120",
        },
    ),
    Case(
        "FrazilTablesDegraded",
        "30m",
        [Fired(ONE, "3 tables of s3://one/requests have been degraded for five minutes.")],
        {
            ("a", 'frazil_component_degraded{component="table",table="db.t"}'): "1x120",
            ("a", 'frazil_component_degraded{component="deferred requests",table="db.t"}'): "1x120",
            ("a", 'frazil_component_degraded{component="table",table="db.u"}'): "1x120",
            ("b", 'frazil_component_degraded{component="table",table="db.v"}'): "1x120",
            ("c", 'frazil_component_degraded{component="catalog"}'): "1x120",
        },
    ),
    # --- Swaps and upkeep ---
    Case(
        "FrazilDoorbellsMissed",
        "40m",
        [Fired(ONE, "15 requests were found by listing alone within 30 minutes.")],
        {
            ("a", "frazil_missed_doorbells_total"): "0+0.25x120",
            ("b", "frazil_missed_doorbells_total"): "0+0.25x120",
            ("c", "frazil_missed_doorbells_total"): "0+0.25x120",
        },
    ),
    Case(
        "FrazilContended",
        "60m",
        [Fired(ONE | TABLE, "Every second swap on db.t loses against another committer.")],
        {
            ("a", _swaps("conflict")): "0+2x120",
            ("a", _swaps("committed")): "0+1x120",
            ("c", _swaps("conflict")): "0+1x120",
            ("c", _swaps("committed")): "0+1x120",
        },
    ),
    Case(
        "FrazilAnswersLost",
        "60m",
        [Fired(ONE | TABLE, "Answers of swaps on db.t get lost.")],
        {
            ("a", _swaps("unknown")): "0+1x120",
            ("a", _swaps("committed")): "0+9x120",
            ("c", _swaps("unknown")): "0+1x120",
            ("c", _swaps("committed")): "0+30x120",
        },
    ),
    Case(
        "FrazilRejected",
        "60m",
        [Fired(TWO | TABLE, "The catalog has refused a commit to db.t.")],
        {("a", _swaps("rejected")): HEALTHY, ("c", _swaps("rejected")): "0x50 1x70"},
    ),
    Case(
        "FrazilMetadataLarge",
        "30m",
        [Fired(ONE | TABLE, "The metadata file of db.t is larger than 8 MiB.")],
        {("a", 'frazil_metadata_alarm{table="db.t"}'): "1x120"},
    ),
    Case(
        "FrazilUpkeepFails",
        "90m",
        [
            Fired(
                ONE | TABLE | {"kind": "merge_manifests"},
                "Upkeep of db.t fails again and again: merge_manifests.",
            )
        ],
        {
            ("a", 'frazil_upkeep_failures_total{table="db.t",kind="merge_manifests"}'): "0+1x120",
            ("c", 'frazil_upkeep_failures_total{table="db.t",kind="delete_files"}'): HEALTHY,
        },
    ),
    # --- The process ---
    Case(
        "FrazilCallsFail",
        "60m",
        [
            Fired(
                {"job": "frazil", "instance": "b", "port": "inbox", "error": "AccessError"},
                "Calls of b to the inbox fail: AccessError.",
            )
        ],
        {
            (
                "a",
                'frazil_call_errors_total{port="inbox",call="get",error="AccessError"}',
            ): "0+1x120",
            (
                "b",
                'frazil_call_errors_total{port="inbox",call="get",error="AccessError"}',
            ): "0+9x120",
        },
    ),
    Case(
        "FrazilLoopSlow",
        "60m",
        [
            Fired(
                {"job": "frazil", "instance": "b"},
                "The event loop of b wakes up more than a second late.",
            )
        ],
        {
            (instance, f'frazil_loop_lag_seconds_bucket{{le="{le}"}}'): values
            for instance, slow in (("a", "0+60x120"), ("b", "0+30x120"))
            for le, values in (("1", slow), ("5", "0+60x120"), ("+Inf", "0+60x120"))
        },
    ),
    Case(
        "FrazilInternalError",
        "60m",
        [
            Fired(
                {"job": "frazil", "instance": "a", "where": "plan"},
                "a has survived an internal error in: plan.",
            )
        ],
        {("a", 'frazil_internal_errors_total{where="plan"}'): "0x50 1x70"},
    ),
]


def rules() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def series_of(case: Case) -> list[dict[str, str]]:
    """Return the series of three healthy committers, but for what the case says."""
    shown: dict[tuple[str, str], str] = {}
    for instance, inbox in INBOXES.items():
        is_gone = instance in case.gone
        members = 1 if inbox == INBOXES["c"] else 2
        info = f'frazil_info{{version="1",catalog="frazil",inbox="{inbox}"}}'
        shown[instance, "up"] = "1x10 0x110" if is_gone else "1x120"
        if is_gone:
            shown[instance, info] = "1x10 stale"
            shown[instance, _lag("waiting")] = "0x10 stale"
            continue
        shown |= {
            (instance, info): "1x120",
            (instance, _lag("waiting")): HEALTHY,
            (instance, "frazil_shards"): f"{64 // members}x120",
            (instance, "frazil_members"): f"{members}x120",
            (instance, "frazil_inbox_listed_timestamp_seconds"): "0+60x120",
        }
    shown |= case.series
    return [
        {"series": _with_target(name, instance), "values": values}
        for (instance, name), values in shown.items()
    ]


def _with_target(series: str, instance: str) -> str:
    """Add the labels that Prometheus gives to the series of a target."""
    name, _, labels = series.partition("{")
    target = f'job="frazil",instance="{instance}"'
    return f"{name}{{{target}}}" if not labels else f"{name}{{{target},{labels}"


def promtool_test(case: Case, rule: dict[str, Any]) -> dict[str, Any]:
    expected = [
        {
            "exp_labels": rule["labels"] | one.labels,
            "exp_annotations": rule["annotations"] | {"summary": one.summary},
        }
        for one in case.fired
    ]
    asked = {"eval_time": case.at, "alertname": case.alert, "exp_alerts": expected}
    return {"interval": "1m", "input_series": series_of(case), "alert_rule_test": [asked]}


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return promtool()
    except NotHereError as error:
        pytest.skip(str(error))


def run(program: Path, *arguments: str, text: str = "") -> None:
    ended = subprocess.run(
        [str(program), *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=PROMTOOL_S_MAX,
    )
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}"


def test_each_rule_has_a_case_in_which_it_fires() -> None:
    assert {case.alert for case in CASES if case.fired} == rules().keys()


def test_each_rule_fires_where_it_should_and_nowhere_else(program: Path, tmp_path: Path) -> None:
    known = rules()
    content = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "1m",
        "tests": [promtool_test(case, known[case.alert]) for case in CASES],
    }
    tests = tmp_path / "alerts_test.yaml"
    tests.write_text(yaml.safe_dump(content))
    run(program, "test", "rules", str(tests))


def test_prometheus_loads_the_rules_and_reads_the_metrics(program: Path) -> None:
    run(program, "check", "rules", str(ALERTS))
    run(program, "check", "metrics", text=Metrics().instruments.page().decode())
