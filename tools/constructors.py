"""Counts the collaborators of each constructor: its parameters that have behavior.

Values do not count: numbers, names, enums, models, exceptions, dataclasses of values alone, and
other classes without a constructor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
_VALUES = {
    "Enum",
    "IntEnum",
    "StrEnum",
    "NamedTuple",
    "TypedDict",
    "BaseModel",
    "BaseSettings",
    "Exception",
}
# Of types from elsewhere these have behavior.
_FOREIGN = {"Callable", "TaskGroup"}


def collaborators(below: str) -> Mapping[str, Sequence[str]]:
    """Return the collaborators that each class below a folder takes, by file and name."""
    return {
        f"{path.relative_to(ROOT)} {node.name}": _collaborators(node)
        for path, node in _classes(ROOT / below)
    }


def _classes(folder: Path) -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                yield path, node


@cache
def _known() -> Mapping[str, Sequence[ast.ClassDef]]:
    found: dict[str, list[ast.ClassDef]] = {}
    for _, node in _classes(ROOT / "committer"):
        found.setdefault(node.name, []).append(node)
    return found


def _collaborators(node: ast.ClassDef) -> list[str]:
    return [name for name, note in _parameters(node) if _has_behavior(note, frozenset())]


def _parameters(node: ast.ClassDef) -> list[tuple[str, ast.expr]]:
    """Return the annotated parameters of the constructor; for a dataclass, its fields."""
    if (init := _init(node)) is not None:
        taken = [*init.args.args, *init.args.kwonlyargs]
        return [(each.arg, each.annotation) for each in taken if each.annotation is not None]
    if not _is_dataclass(node):
        return []
    inherited = [field for base in _bases(node) for field in _parameters(base)]
    own = (one for one in node.body if isinstance(one, ast.AnnAssign))
    return inherited + [(ast.unparse(one.target), one.annotation) for one in own]


def _init(node: ast.ClassDef) -> ast.FunctionDef | None:
    own = (one for one in node.body if isinstance(one, ast.FunctionDef))
    return next((one for one in own if one.name == "__init__"), None)


def _has_behavior(note: ast.expr, seen: frozenset[str]) -> bool:
    return any(
        name in _FOREIGN or any(not _is_value(node, seen) for node in _known().get(name, ()))
        for name in _names(note)
        if name not in seen
    )


def _is_value(node: ast.ClassDef, seen: frozenset[str]) -> bool:
    """Return whether a class is a value. `seen`: its holders; a value may hold its own kind."""
    bases = {name for base in node.bases for name in _names(base)}
    if bases & _VALUES:
        return True
    if not _is_dataclass(node):
        is_plain = "Protocol" not in bases and _init(node) is None
        return is_plain and all(_is_value(base, seen) for base in _bases(node))
    within = seen | {node.name}
    return not any(_has_behavior(note, within) for _, note in _parameters(node))


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in _names(each) for each in node.decorator_list)


def _bases(node: ast.ClassDef) -> Iterator[ast.ClassDef]:
    for base in node.bases:
        for name in _names(base):
            yield from _known().get(name, ())


def _names(note: ast.expr) -> Iterator[str]:
    """Yield all names in an annotation, also those in quotes."""
    for part in ast.walk(note):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from _names(ast.parse(part.value, mode="eval").body)


if __name__ == "__main__":
    counted = collaborators("committer/service")
    for name, taken in sorted(counted.items(), key=lambda one: -len(one[1])):
        print(len(taken), name, *taken)
