"""Writes the reference files that are made from code: `make docs`. A test compares them."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from committer.catalog.property_names import CATALOG_PROPERTIES
from committer.cli.app import app
from committer.request.commit_request import CommitRequest
from committer.service.process.status_model import Status
from committer.service.telemetry.instruments import Instruments
from committer.settings import service_settings
from committer.settings.setting_names import variable_of
from tools.cost import cost_page
from tools.dashboard import dashboard
from tools.evidence import evidence_page
from tools.surface import surface_page

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs/reference"
_WIDTH = 100


def documents() -> dict[Path, str]:
    """Return every generated file and its content."""
    return {
        REFERENCE / "commit-request.schema.json": _request_schema(),
        REFERENCE / "settings.md": _settings_page(),
        REFERENCE / "cli.md": _cli_page(),
        REFERENCE / "cost.md": cost_page(),
        REFERENCE / "evidence.md": evidence_page(),
        REFERENCE / "metrics.md": _metrics_page(),
        REFERENCE / "python.md": surface_page(),
        ROOT / "deploy/grafana/frazil.json": dashboard(),
    }


def main() -> None:
    for path, content in documents().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


# --- The commit request --------------------------------------------------------------------------


def _request_schema() -> str:
    model = CommitRequest.model_json_schema(by_alias=True)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model,
        # It has a default for us, who write one version; a reader must not guess.
        "required": ["request-version", *model["required"]],
    }
    return json.dumps(schema, indent=2) + "\n"


# --- Settings ------------------------------------------------------------------------------------

_SETTINGS_INTRODUCTION = """\
# Settings of the committer

Made from `committer/settings/service_settings.py` by `make docs`.

Read once at start-up. Sources, strongest first:

1. environment variables, as in the tables below; `_FILE` behind the name
   (`FRAZIL_QUEUE__URL_FILE=/run/secrets/queue-url`) names a file that holds the value, so that a
   secret is in no variable;
2. the TOML file that `FRAZIL_CONFIG` names, else `<home>/frazil.toml` if there is one; groups are
   TOML tables (`[commit]`, then `min_interval_ms = 500`);
3. for the catalog alone, and only if `catalog.name` or `--catalog` names one of its catalogs:
   PyIceberg's configuration, that is `PYICEBERG_CATALOG__<NAME>__…`, then the first
   `.pyiceberg.yaml` of `PYICEBERG_HOME`, the user's home and the working directory;
4. the defaults, with which everything runs on one machine below `~/.frazil`.

A wrong or unknown setting is named, and nothing starts (exit code 2). Of the variables `FRAZIL_…`
only those that Kubernetes sets for services (`FRAZIL_SERVICE_HOST`, …) may be there beside these. A
writer on Spark reads some of these names too: [spark-options.md](spark-options.md).
"""


def _settings_page() -> str:
    plain, groups = [], []
    for name, field in service_settings.Settings.model_fields.items():
        if isinstance(field.default, BaseModel):
            groups.append((name, type(field.default)))
        else:
            plain.append((name, field))
    general = _settings_table("", plain, _field_docs(service_settings.Settings))
    parts = [_SETTINGS_INTRODUCTION, f"## General\n\n{general}"]
    for name, group in groups:
        docs = _field_docs(group)
        fields = [(field, info) for field, info in group.model_fields.items() if field in docs]
        table = _settings_table(f"{name}.", fields, docs)
        rows = _property_rows() if name == "catalog" else ""
        parts.append(f"## `{name}`\n\n{inspect.getdoc(group)}\n\n{table}{rows}")
    return "\n".join(parts)


def _settings_table(prefix: str, fields: list[tuple[str, FieldInfo]], docs: dict[str, str]) -> str:
    lines = ["| setting | variable | default | |", "|---|---|---|---|"]
    for name, field in fields:
        setting = prefix + name
        variable = "FRAZIL_" + setting.replace(".", "__").upper()
        default = "" if str(field.default) == "" else f"`{field.default}`"
        lines.append(f"| `{setting}` | `{variable}` | {default} | {docs[name]} |")
    return "\n".join(lines) + "\n"


def _property_rows() -> str:
    rows = (
        f"| `catalog.{name}` | `{variable_of(f'catalog.{name}')}` |  | {meaning} |\n"
        for name, meaning in CATALOG_PROPERTIES.items()
    )
    return "".join(rows)


def _field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Return the string that stands below each field."""
    (definition,) = ast.parse(dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    docs = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[name] = " ".join(text.split()).replace("|", "\\|")
    return docs


# --- The command ---------------------------------------------------------------------------------

_CLI_INTRODUCTION = """\
# The `frazil` command

Made from `committer/cli` by `make docs`.

Exit codes: 0 done; 1 what was asked for failed, or is not there (a table, a file, the catalog: of
any kind, SQLite or DynamoDB); 2 wrong usage or settings, a missing extra, or no permission; 130
Ctrl-C. Results go to stdout, everything else to stderr: what goes wrong is one sentence there.
`FRAZIL_DEBUG=1` prints the Python traceback before it; without it, that of an internal error is
kept in a file, which the sentence names. `--json` prints one JSON object a line.
"""


def _cli_page() -> str:
    parts = [_CLI_INTRODUCTION]
    for path, help_text in _helps("frazil", typer.main.get_command(app), None):
        lines = "\n".join(line.rstrip() for line in help_text.splitlines())
        parts.append(f"## `{path}`\n\n{indent(lines, '    ')}\n")
    return "\n".join(parts)


def _helps(path: str, command: Any, parent: Any) -> Iterator[tuple[str, str]]:
    """Yield each command's path and help, the groups before their commands."""
    width = {"terminal_width": _WIDTH, "max_content_width": _WIDTH}
    name = path.rpartition(" ")[2]
    context = command.make_context(name, [], parent=parent, resilient_parsing=True, **width)
    yield path, command.get_help(context)
    for child_name, child in getattr(command, "commands", {}).items():
        yield from _helps(f"{path} {child_name}", child, context)


# --- Metrics -------------------------------------------------------------------------------------

_METRICS_INTRODUCTION = """\
# Metrics

Made from `committer/service/telemetry/instruments.py` by `make docs`.

`GET /metrics` on `service.http_host`:`service.http_port` answers in Prometheus' text format. Names
and labels are stable. Labels are bounded: `table` is one that the catalog has (`unknown` until it
has shown it), never a producer. Counters start at 0 with each process; what is not known is absent.
Beside these there are `process_cpu_seconds_total`, `process_resident_memory_bytes` and their like.

[alerts.yaml](../../deploy/prometheus/alerts.yaml) and
[frazil.json](../../deploy/grafana/frazil.json) (a Grafana dashboard) use them;
[operations.md](../operations.md) says what to watch.
"""

_STATUS_INTRODUCTION = """\
## `/status`

The same numbers as one JSON object: what `frazil status` shows. Fields may be added. Its schema:
"""


def _metrics_page() -> str:
    lines = ["| metric | kind | labels | |", "|---|---|---|---|"]
    for one in Instruments().described:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        lines.append(f"| `{one.name}` | {one.kind} | {labels} | {one.text} |")
    schema = json.dumps(Status.model_json_schema(), indent=1)
    return "\n".join(
        [_METRICS_INTRODUCTION, *lines, "", _STATUS_INTRODUCTION, f"```json\n{schema}\n```", ""]
    )


if __name__ == "__main__":
    main()
