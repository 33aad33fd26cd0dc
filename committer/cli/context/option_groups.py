"""Options that go together, as one value of a command's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of its parameters that are dataclasses."""
    groups: dict[str, tuple[Callable[..., object], list[Parameter]]] = {}
    options: list[Parameter] = []
    for name, one in signature(command, eval_str=True).parameters.items():
        if is_dataclass(one.annotation) and isinstance(one.annotation, type):
            fields = list(signature(one.annotation, eval_str=True).parameters.values())
            groups[name] = one.annotation, fields
            options += fields
        else:
            options.append(one)

    @wraps(command)
    def run(**given: Any) -> None:
        values = {
            name: group(**{field.name: given.pop(field.name) for field in fields})
            for name, (group, fields) in groups.items()
        }
        command(**values, **given)

    shown = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in options]
    run.__dict__["__signature__"] = Signature(shown)
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run
