"""Alert rules and dashboard name only what `/metrics` serves, and each rule says what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from committer.service.telemetry.instruments import Instruments

ROOT = Path(__file__).parent.parent
ALERTS = ROOT / "deploy/prometheus/alerts.yaml"
DASHBOARD = ROOT / "deploy/grafana/frazil.json"
# Replaced by the address of the copy of the documentation that the operator serves.
DOCS = "https://docs.example.com/frazil"
# Labels that Prometheus adds to every series that it scrapes, and to the buckets of histograms.
ADDED = {"job", "instance", "namespace", "le"}
SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    shown = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [*(str(rule["expr"]) for rule in rules()), *shown]


def served() -> dict[str, set[str]]:
    """Return the labels of each name that a fresh process has on its page, or will have."""
    instruments = Instruments()
    labels = {one.name.removesuffix("_total"): set(one.labels) for one in instruments.described}
    families = text_string_to_metric_families(instruments.page().decode())
    return {
        family.name + suffix: labels.get(family.name, set()) | ADDED
        for family in families
        for suffix in SUFFIXES[family.type]
    }


@pytest.mark.parametrize("expression", expressions())
def test_each_metric_and_each_label_of_an_expression_is_on_the_page(expression: str) -> None:
    known = served()
    names = re.findall(r"\b(?:frazil|process)_[a-z_]+", expression)
    assert names, "no metric of ours"
    assert [name for name in names if name not in known] == []
    selected = re.findall(r"([a-z_]+)\{([^}]*)\}", expression)
    wrong = [
        f"{name}: {label}"
        for name, selector in selected
        for label in re.findall(r"([a-z_]+)!?=", selector)
        if label not in known[name]
    ]
    assert wrong == []
    grouped = {
        label for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(", ")
    }
    assert grouped <= set.union(*(known[name] for name in names))


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_each_rule_says_what_it_means_and_what_to_do(rule: dict[str, dict[str, str]]) -> None:
    assert set(rule["annotations"]) == {"summary", "description", "action", "runbook_url"}
    assert all(
        rule["annotations"][name].endswith(".") for name in ("summary", "description", "action")
    )
    assert rule["labels"]["severity"] in ("warning", "critical")
    named = set(re.findall(r"\$labels\.([a-z]+)", " ".join(rule["annotations"].values())))
    assert named <= labels_of(str(rule["expr"]))


def labels_of(expression: str) -> set[str]:
    """Return the labels that an alert of this expression has."""
    grouped = re.findall(r"\bby \(([^)]*)\)", expression)
    # Without a group an alert has the labels of its target.
    return set(", ".join(grouped).split(", ")) if grouped and "up ==" not in expression else ADDED


def test_each_rule_has_a_runbook_and_no_other_alert_has_one() -> None:
    page = (ROOT / "docs/operations/alerts.md").read_text()
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    named = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rules()}
    assert set(sections) == named.keys()
    assert set(re.findall(r"^\| \[`(\w+)`\]", page, re.M)) == named.keys()
    assert all(
        re.findall(r"^\* \*\*(\w+)\*\*:", text, re.M) == ["Symptom", "Meaning", "Check", "Fix"]
        for text in sections.values()
    )
    assert named == {one: f"{DOCS}/operations/alerts.html#{one.lower()}" for one in named}


def test_the_page_of_alerts_has_the_severity_of_each_rule() -> None:
    page = (ROOT / "docs/operations/alerts.md").read_text()
    said = dict(re.findall(r"^\| \[`(\w+)`\][^|]*\| (\w+) \|", page, re.M))
    assert said == {rule["alert"]: rule["labels"]["severity"] for rule in rules()}


def test_every_metric_is_in_a_rule_or_on_the_dashboard() -> None:
    shown = " ".join(expressions())
    unused = [one.name for one in Instruments().described if one.name not in shown]
    assert unused == []


def test_no_alert_merges_two_installations_and_none_about_a_process_two_processes() -> None:
    """A healthy committer must not hide another one."""
    for rule in rules():
        expression = str(rule["expr"])
        aggregated = re.findall(r"\b(?:max|min|sum|count)\b(?: by \(([^)]*)\))?", expression)
        for labels in aggregated:
            is_apart = {"job", "namespace"} <= set(labels.split(", "))
            is_named = (
                "inbox" in labels or "instance" in labels or rule["alert"] == "FrazilReplicaDown"
            )
            assert is_apart and is_named, rule["alert"]
