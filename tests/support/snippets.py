"""Reads the code blocks and inline commands of pages with the parsers of the product.

Each `*_problems` function returns sentences; none means that the snippet is sound. Nothing is run.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import typer
from jsonschema import Draft202012Validator
from jsonschema import ValidationError as SchemaError
from pydantic import ValidationError
from typer.core import TyperGroup
from typer.exceptions import TyperException

from committer.cli.app import app
from committer.errors import FrazilError
from committer.iceberg.entry.content_file_json import parse_content_file
from committer.iceberg.expressions.expression_json import parse_expression
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import LongType, NestedField, StringType, TimestamptzType
from committer.ledger_entry import parse_entry
from committer.plan.ledger.one_shots import parse_one_shots
from committer.ports.queue import shard_of
from committer.queue.entry_fields import decode_doorbell
from committer.request.attempt import attempt_of
from committer.request.commit_request import CommitRequest, ManifestReference
from committer.request.signature import parse_keys
from committer.settings.service_settings import load_settings
from frazil import public, spark

ROOT = Path(__file__).parents[2]
_COMMAND = typer.main.get_command(app)
_TARGETS = frozenset(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
_FOLDERS = tuple(f"{path.name}/" for path in ROOT.iterdir() if path.is_dir())
_CONTROL = frozenset(("do", "done", "then", "fi", "if", "else"))
_HEX = re.compile(r"<[^>]*?(\d+) hex digits>")


def problems(language: str, text: str) -> list[str]:
    """Return the problems of a block. Errors: `KeyError` for a language without a parser."""
    return list(PARSERS[language](text))


# --- Shell ---------------------------------------------------------------------------------------


def shell_problems(text: str) -> Iterator[str]:
    """Yield syntax errors, and problems of the commands that the repository knows."""
    checked = subprocess.run(["sh", "-n", "-c", text], capture_output=True, text=True)
    if checked.returncode:
        yield checked.stderr.strip()
    for words in shell_commands(text):
        yield from _command_problems(words)
        yield from (f"no `{word}`" for word in words if _is_absent(word))


def shell_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command, without assignments and redirections."""
    for line in text.replace("\\\n", " ").splitlines():
        words: list[str] = []
        for word in (*_tokens(line), ";"):
            if not set(word) <= set(";|&<>()"):
                words.append(word)
            elif words and not set(word) <= set("<>"):
                yield words
                words = []
            else:
                words.append(">") if words else None


def _tokens(line: str) -> Iterator[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>()")
    lexer.whitespace_split = True
    yield from lexer


def _command_problems(words: Sequence[str]) -> Iterator[str]:
    rest = [word for word in words if word not in _CONTROL]
    while rest and re.match(r"[A-Z_]+=|export$", rest[0]):
        rest.pop(0)
    match rest[: rest.index(">")] if ">" in rest else rest:
        case ["frazil", *arguments]:
            yield from frazil_problems(arguments)
        case ["make", target, *_] if target not in _TARGETS:
            yield f"no target `{target}` in the Makefile"
        case [python, "-m", module, *_] if python.endswith("python"):
            if importlib.util.find_spec(module) is None:
                yield f"no module `{module}`"
        case ["redis-cli", "XADD", key, "*", *pairs]:
            yield from _doorbell_problems(key, pairs)


def _is_absent(word: str) -> bool:
    """Return whether a word names a path of the repository that does not exist."""
    return word.startswith(_FOLDERS) and not any(ROOT.glob(word.split("::")[0].rstrip("/")))


def frazil_problems(arguments: Sequence[str]) -> Iterator[str]:
    """Parse the arguments of `frazil` as the command line does, and run nothing."""
    command: Any = _COMMAND
    context, rest = None, list(arguments)
    try:
        while isinstance(command, TyperGroup):
            context = command.make_context(command.name, rest, parent=context)
            rest = [*context._protected_args, *context.args]
            _, command, rest = command.resolve_command(context, rest)
        command.make_context(command.name, rest, parent=context)
    except TyperException as error:
        yield f"frazil {shlex.join(arguments)}: {error}"


def mention_problems(mention: str) -> Iterator[str]:
    """Yield unknown commands and options of a command that a text mentions, maybe in part."""
    command: Any = _COMMAND
    for word in mention.split()[1:]:
        if not isinstance(command, TyperGroup) or re.search("[…A-Z|]|^-", word):
            break
        if word not in command.commands:
            yield f"{mention}: no command `{word}`"
            return
        command = command.commands[word]
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    named = set(re.findall(r"(?<!\S)--[a-z-]+", mention)) - {"--help", "--version"}
    yield from (f"{mention}: no option `{one}`" for one in sorted(named - known))


# --- Python --------------------------------------------------------------------------------------


def python_problems(text: str) -> Iterator[str]:
    """Yield syntax errors, and modules, names and keyword arguments that do not exist."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield str(error)
        return
    imported: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from _import_problems(node, imported)
        elif isinstance(node, ast.ImportFrom):
            yield from _from_problems(node, imported)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield from _attribute_problems(node, imported)
        elif isinstance(node, ast.Call):
            yield from _call_problems(node, imported)


def call_problems(mention: str) -> Iterator[str]:
    """Yield what is wrong with a call of a public function that a text mentions; one that leaves
    arguments out, by `…` or for brevity, is judged by its keywords alone."""
    name = mention.partition("(")[0].removeprefix("frazil.").removeprefix("spark.")
    called = getattr(public, name, getattr(spark, name, None)) if name.isidentifier() else None
    if called is None or not mention.endswith(")"):
        return
    try:
        call = ast.parse(mention.replace("…", "..."), mode="eval").body
    except SyntaxError:
        return
    known = inspect.signature(called).parameters.values()
    takes_any = any(one.kind is one.VAR_KEYWORD for one in known)
    named = {one.name for one in known}
    for keyword in call.keywords if isinstance(call, ast.Call) and not takes_any else ():
        if keyword.arg and keyword.arg not in named:
            yield f"{mention}: no argument `{keyword.arg}`"


def _import_problems(node: ast.Import, imported: dict[str, Any]) -> Iterator[str]:
    for alias in node.names:
        if importlib.util.find_spec(alias.name) is None:
            yield f"no module `{alias.name}`"
        elif alias.name == "frazil":
            imported["frazil"] = importlib.import_module(alias.name)


def _from_problems(node: ast.ImportFrom, imported: dict[str, Any]) -> Iterator[str]:
    module = importlib.import_module(node.module or "")
    for alias in node.names:
        if not hasattr(module, alias.name):
            yield f"no `{alias.name}` in `{node.module}`"
        elif (node.module or "").startswith("frazil"):
            imported[alias.asname or alias.name] = getattr(module, alias.name)


def _attribute_problems(node: ast.Attribute, imported: Mapping[str, Any]) -> Iterator[str]:
    match node.value:
        case ast.Name(id=name) if name in imported and not hasattr(imported[name], node.attr):
            yield f"no `{name}.{node.attr}`"


def _call_problems(node: ast.Call, imported: Mapping[str, Any]) -> Iterator[str]:
    match node.func:
        case ast.Name(id=name) if name in imported:
            called = imported[name]
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in imported:
            called = getattr(imported[name], attribute, print)
        case _:
            return
    keywords = {one.arg: None for one in node.keywords if one.arg}
    try:
        inspect.signature(called).bind(*node.args, **keywords)
    except TypeError as error:
        yield f"{ast.unparse(node.func)}: {error}"


# --- Data ----------------------------------------------------------------------------------------


def json_problems(text: str) -> Iterator[str]:
    """Parse a value of the ledger or of a request, as its keys tell."""
    filled = _filled(text)
    keys = json.loads(filled).keys()
    for form, parse in _JSON_FORMS.items():
        if form <= keys:
            yield from _refused(parse, filled)
            return
    if keys <= _LINE_KEYS:
        yield from _refused(_part_of_a_line, filled)
        return
    yield f"no form of JSON with the keys {sorted(keys)} is known"


def toml_problems(text: str) -> Iterator[str]:
    """Parse a file of keys or of settings, as its tables tell."""
    filled = _filled(text)
    fields = tomllib.loads(filled)
    if "keys" in fields:
        yield from _refused(lambda content: parse_keys(content.encode(), "keys.toml"), filled)
    else:
        yield from _refused(lambda _: load_settings(**fields), filled)


def filter_problems(text: str) -> Iterator[str]:
    """Parse each line as a filter."""
    for line in text.splitlines():
        yield from _refused(parse_where, line)


def spark_conf_problems(text: str) -> Iterator[str]:
    """Check that each line is a key and a value, and that a test with real Spark sets the key."""
    tests = "".join(path.read_text() for path in (ROOT / "tests/integration").glob("*.py"))
    for line in text.splitlines():
        key, value = line.split()
        names = [re.sub(r"^spark\.sql\.catalog\.\w+\.?", "", key)]
        names += [value] if value.startswith("org.") else []
        yield from (f"no test sets `{one}`" for one in names if one not in tests)


def _doorbell_problems(key: str, pairs: Sequence[str]) -> Iterator[str]:
    fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
    entry = {name.encode(): value.encode() for name, value in fields.items()}
    try:
        shard = shard_of(decode_doorbell(entry).table_uuid)
    except ValueError as error:
        yield str(error)
    else:
        yield from (
            [f"{key}: the table is in shard {shard:02d}"] if f"{shard:02d}" not in key else []
        )


def _filled(text: str) -> str:
    """Fill in digits where a page says how many there are: `<64 hex digits>`."""
    return _HEX.sub(lambda found: "0" * int(found[1]), text)


def _refused(parse: Callable[[str], object], text: str) -> Iterator[str]:
    try:
        parse(text)
    except (FrazilError, SchemaError, ValidationError, ValueError) as error:
        yield str(error)


def _part_of_a_line(text: str) -> None:
    """Parse a part of a request's line by the published schema and by the model, completed by all
    that each line has; files and filters are read, too. Files are of `db.events`, as in the page
    that publishes by hand.
    """
    line = _completed(json.loads(text))
    Draft202012Validator(_LINE_SCHEMA).validate(line)
    request = CommitRequest.model_validate_json(json.dumps(line))
    for file in request.files:
        parse_content_file(file, {0: _EVENTS_BY_DAY}, _EVENTS)
    for filter in (request.needs.row_filter, request.needs.conflict_filter):
        if filter is not None:
            parse_expression(filter)


def _completed(part: dict[str, Any]) -> dict[str, Any]:
    of_transaction = part.get("transaction", {}).get("tables", ({},))[0]
    table_uuid = of_transaction.get("table-uuid", str(UUID(int=1)))
    producer, nonce = part.get("producer", {"id": "import-2026"}), UUID(_UUID_7)
    branch, epoch = part.get("branch", "main"), part.get("epoch", 0)
    attempt = attempt_of(UUID(table_uuid), branch, producer["id"], epoch, nonce)
    adds_none = {"delete", "rewrite-manifests", "cherry-pick", "alter"}
    is_empty = "manifests" in part or part.get("operation") in adds_none
    return {
        "request-version": 1,
        "catalog": "frazil",
        "table": of_transaction.get("table", {"namespace": ["db"], "name": "events"}),
        "table-uuid": table_uuid,
        "producer": producer,
        "epoch": epoch,
        "nonce": str(nonce),
        "attempt": str(attempt),
        "fingerprint": {"kind": "file-list", "value": "march.csv"},
        "published-at-ms": 1,
        "files": [] if is_empty else [_EVENTS_FILE],
        **part,
    }


_UUID_7 = "01900000-0000-7000-8000-000000000001"
_LINE_KEYS = frozenset(one.alias or name for name, one in CommitRequest.model_fields.items())
_LINE_SCHEMA = json.loads((ROOT / "docs/reference/commit-request.schema.json").read_text())
_EVENTS = Schema(
    (
        NestedField(1, "id", LongType(), True),
        NestedField(2, "carrier", StringType(), False),
        NestedField(3, "at", TimestamptzType(), False),
    )
)
_EVENTS_BY_DAY = PartitionSpec(0, (PartitionField((3,), 1000, "at_day", parse_transform("day")),))
_EVENTS_FILE = {
    "spec-id": 0,
    "file-path": "s3://lake/db/events/data/1.parquet",
    "file-format": "parquet",
    "partition": ["2026-03-01"],
    "record-count": 1,
    "file-size-in-bytes": 1000,
}

_JSON_FORMS: Mapping[frozenset[str], Callable[[str], object]] = {
    frozenset(("v", "epochs")): parse_entry,
    frozenset(("v", "groups")): parse_one_shots,
    frozenset(("content", "partition-spec-id")): ManifestReference.model_validate_json,
}

PARSERS: Mapping[str, Callable[[str], Iterator[str]]] = {
    "sh": shell_problems,
    "python": python_problems,
    "json": json_problems,
    "toml": toml_problems,
    "properties": spark_conf_problems,
    "filter": filter_problems,
}
