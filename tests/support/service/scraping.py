"""Reads a page of metrics as Prometheus does, with the library's own parser."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families


class Page:
    """The values of one page by name and labels."""

    def __init__(self, text: str) -> None:
        families = list(text_string_to_metric_families(text))
        samples = [sample for family in families for sample in family.samples]
        self.values = {(one.name, _labels(one.labels)): one.value for one in samples}
        self.names = {family.name for family in families} | {one.name for one in samples}
        self.labels = {name for one in samples for name in one.labels}

    def __call__(self, name: str, **labels: str) -> float | None:
        """Return the value of one series; None if there is none."""
        return self.values.get((name, _labels(labels)))


def _labels(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the labels as Prometheus keeps them: without empty ones."""
    return frozenset((name, value) for name, value in labels.items() if value)
