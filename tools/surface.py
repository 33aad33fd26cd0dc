"""The public Python surface as text: every name that users import, with its signature.

`make docs` writes it into `docs/reference/python.md`, and a test compares: a name that comes, goes
or changes is seen in a review.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any

from frazil import public, spark

_INTRODUCTION = """\
# Python names

Made from `frazil/public.py` and `frazil/spark.py` by `make docs`. These names are the public face;
everything in `committer` and `workers` may change with any release. `help(frazil.Table)` shows
units, shapes and errors.

How to: [read a table from Python](../how-to/read-from-python.md),
[publish from Spark](../how-to/publish-from-spark.md),
[delete, update and merge from Spark](../how-to/delete-update-merge-from-spark.md).
"""


def surface_page() -> str:
    """Return the page of public names."""
    functions = [name for name in public.__all__ if inspect.isfunction(getattr(public, name))]
    classes = [name for name in public.__all__ if inspect.isclass(getattr(public, name))]
    errors = [name for name in classes if issubclass(getattr(public, name), Exception)]
    values = [name for name in classes if name not in errors]
    parts = [
        _INTRODUCTION,
        _section("`frazil`: functions", public, functions),
        _section("`frazil`: classes", public, values),
        _section("`frazil`: errors", public, errors),
        _section("`frazil.spark`", spark, spark.__all__),
    ]
    return "\n".join(parts)


def _section(title: str, module: ModuleType, names: list[str]) -> str:
    lines = [line for name in names for line in (*_described(name, getattr(module, name)), "")]
    return "\n".join([f"## {title}", "", "```python", *lines[:-1], "```", ""])


def _described(name: str, found: Any) -> list[str]:
    if inspect.isfunction(found):
        return [*_function("", name, found), *_first_paragraph(found)]
    bases = [one.__name__ for one in found.__bases__ if one is not object]
    head = f"class {name}({', '.join(bases)}):" if bases else f"class {name}:"
    return [head, *_first_paragraph(found), *_members(found)]


def _members(found: Any) -> Iterator[str]:
    if issubclass(found, Enum):
        yield from (f"    {one.name} = {one.value!r}" for one in found)
        return
    fields = dataclasses.fields(found) if dataclasses.is_dataclass(found) else ()
    for one in fields:
        if not one.name.startswith("_"):
            yield f"    {one.name}: {_plain(one.type)}"
    known = {one.name for one in fields}
    for name, member in vars(found).items():
        if name.startswith("_") or name in known:
            continue
        if isinstance(member, property) and member.fget is not None:
            yield f"    {name}: {_plain(inspect.signature(member.fget).return_annotation)}"
        elif inspect.isfunction(member):
            yield from _function("    ", name, member)


def _function(indent: str, name: str, found: Any) -> list[str]:
    signature = inspect.signature(found)
    one_line = f"{indent}def {name}{_plain(str(signature))}"
    if len(one_line) <= 100:
        return [one_line]
    parameters = list(signature.parameters.values())
    lines = [f"{indent}def {name}("]
    for at, one in enumerate(parameters):
        if one.kind is one.KEYWORD_ONLY and (at == 0 or parameters[at - 1].kind is not one.kind):
            lines.append(f"{indent}    *,")
        lines.append(f"{indent}    {_plain(str(one))},")
    return [*lines, f"{indent}) -> {_plain(signature.return_annotation)}"]


def _plain(annotation: object) -> str:
    """Return the annotation as the source spells it: a signature puts texts in quotes."""
    text = (
        annotation
        if isinstance(annotation, str)
        else getattr(annotation, "__name__", str(annotation))
    )
    return re.sub(r"((?:: |-> ))'([^']*)'", r"\1\2", text)


def _first_paragraph(found: Any) -> list[str]:
    paragraph = (inspect.getdoc(found) or "").partition("\n\n")[0]
    return textwrap.wrap(paragraph, 100, initial_indent="    # ", subsequent_indent="    # ")
