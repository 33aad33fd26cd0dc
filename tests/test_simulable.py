"""The service can be simulated: time, ids, chance and I/O come through `World` and the ports alone.

ruff bans clocks, uuids and `random` everywhere. This test goes further, where the simulation runs
the code: no module that reaches the machine, no wait but on the loop's clock.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MACHINE = frozenset(
    {"asyncio.subprocess", "concurrent", "ctypes", "fcntl", "io", "mmap", "multiprocessing", "os"}
    | {"pathlib", "random", "resource", "secrets", "select", "selectors", "shutil", "signal"}
    | {"socket", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib.request"}
)
# The edges, which no simulation runs, and what each of them needs of the machine.
EDGES = {
    # Large requests are checked in other processes: a simulation checks them where they are.
    "service/checks/check_process.py": {
        *("concurrent", "fcntl", "io", "os", "pathlib", "select", "signal", "subprocess", "sys"),
        "threading",
    },
    "service/checks/check_worker.py": {"ctypes", "os", "pathlib", "resource", "signal", "sys"},
    "service/process/child_process.py": {"os", "sys"},
    "service/telemetry/json_stderr.py": {"io", "os", "sys", "threading"},
    # A thread writes the log.
    "service/telemetry/log_stream.py": {"io", "os", "select", "sys", "threading"},
    # The end of a process that is stuck in the machine.
    "service/process/last_exit.py": {"os", "threading", "time"},
    "service/telemetry/log.py": {"sys"},
    "service/process/composition.py": {"pathlib", "socket"},
    "service/process/redis_server.py": set(MACHINE),
    "service/process/startup.py": {"os"},
    # Long computations leave the loop: a simulation runs them where they are.
    "service/tasks/steps.py": {"threading", "time"},
    # A lock for what those computations share with the loop.
    "service/tasks/recent_objects.py": {"threading"},
}
FOLDERS = ("service", "plan", "iceberg")
BANNED_CALLS = frozenset({"open", "input", "uuid1", "uuid4", "now", "utcnow", "today"})


def sources() -> list[Path]:
    return [
        path for folder in FOLDERS for path in sorted((ROOT / "committer" / folder).rglob("*.py"))
    ]


def breaches(source: str, allowed: set[str]) -> Iterator[str]:
    """Yield each use of the machine in a source that is not allowed."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (
                f"imports {alias.name}" for alias in node.names if _is_machine(alias.name, allowed)
            )
        elif isinstance(node, ast.ImportFrom):
            if _is_machine(node.module or "", allowed):
                yield f"imports from {node.module}"
        elif isinstance(node, ast.Call):
            name = _name(node.func)
            if name == "asyncio.sleep" and not _is_zero(node.args):
                yield "waits with asyncio.sleep, and not with World.sleep"
            elif name in BANNED_CALLS or (
                name.endswith(".run_in_executor") and "concurrent" not in allowed
            ):
                yield f"calls {name}"


def _is_machine(module: str, allowed: set[str]) -> bool:
    top = module.partition(".")[0]
    return (top in MACHINE or module in MACHINE) and top not in allowed


def _name(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_name(value)}.{name}"
    return ""


def _is_zero(arguments: list[ast.expr]) -> bool:
    return len(arguments) == 1 and isinstance(arguments[0], ast.Constant) and not arguments[0].value


@pytest.mark.thorough
def test_nothing_but_the_world_and_the_ports_reaches_the_machine() -> None:
    found = {}
    for path in sources():
        name = path.relative_to(ROOT / "committer").as_posix()
        if breached := list(breaches(path.read_text(), EDGES.get(name, set()))):
            found[name] = breached
    assert found == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time", "imports time"),
        ("from os.path import join", "imports from os.path"),
        ("import asyncio\nasync def wait(): await asyncio.sleep(2)", "waits with asyncio.sleep"),
        ("open('x')", "calls open"),
        ("from uuid import uuid4\nuuid4()", "calls uuid4"),
    ],
)
def test_each_breach_is_found(source: str, found: str) -> None:
    (breach,) = breaches(source, set())
    assert breach.startswith(found)
