"""The page that walks through the way of a request names the modules that a request passes."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tests.support.builders.request_builders import build_request
from tests.support.life_of_a_request import page_rows
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
SERVICE = Path(__file__).parents[3] / "committer/service"
# For each module a function that runs for a request alone, and not when there is none.
ENTERED_BY = {
    "ingest/consumer.py": "_take",
    "ingest/intake.py": "take",
    "ingest/committer_pool.py": "submit",
    "table/table_committer.py": "submit",
    "requests/pending.py": "add",
    "table/table_rounds.py": "run_one",
    "table/admission.py": "admit",
    "table/inflight_batch.py": "next",
    "table/batch_committer.py": "attempt",
    "table/verdicts.py": "landed",
    "settle/endings.py": "_committed",
    "settle/settler.py": "_answer",
}


def named(cell: str) -> list[str]:
    return re.findall(r"`([\w/]+\.py)`", cell)


def steps() -> list[tuple[str, list[str]]]:
    """Return the module of each step, and those that it calls."""
    return [(named(cells[1])[0], named(cells[3])) for cells in page_rows("The twelve modules")]


def imports(module: str) -> set[str]:
    """Return the modules of the service that a module imports."""
    return {
        f"{node.module.removeprefix('committer.service.').replace('.', '/')}.py"
        for node in ast.walk(ast.parse((SERVICE / module).read_text()))
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }


@contextmanager
def called_functions() -> Iterator[dict[tuple[str, str], None]]:
    """Collect the functions of the service that are called, in the order of their first calls."""
    called: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        if event == "call" and path.is_relative_to(SERVICE) and not name.endswith("init__"):
            called.setdefault((path.relative_to(SERVICE).as_posix(), name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(before)


def test_each_module_of_the_page_is_imported_by_an_earlier_one_and_there_are_twelve() -> None:
    modules = [module for module, _ in steps()]
    assert len(set(modules)) == len(modules) == 12
    known = imports(modules[0])
    for module in modules[1:]:
        assert module in known, f"no module before `{module}` imports it"
        known |= imports(module)


def test_each_module_that_a_step_calls_is_imported_by_it() -> None:
    told = [(module, called) for module, calls in steps() for called in calls]
    assert len(told) > 8
    assert [(module, called) for module, called in told if called not in imports(module)] == []


async def test_a_request_passes_the_modules_of_the_page_in_its_order() -> None:
    harness = ServiceHarness()
    sealed = build_request(await harness.create_table())
    await harness.publish(sealed)
    with called_functions() as called:
        await harness.run_until_settled()
    assert await harness.outstanding() == []
    passed = [module for module, function in called if ENTERED_BY.get(module) == function]
    assert passed == [module for module, _ in steps()]
    entered = {module for module, _ in called}
    assert {one for _, calls in steps() for one in calls} <= entered
    # The doorbell carries the request.
    assert ("ingest/inbox_reader.py", "read") not in called
