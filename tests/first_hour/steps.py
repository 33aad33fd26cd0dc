"""A new user's walk through a page: its code blocks as they stand there, and a few other commands.

A walk is a list of steps. Every code block of a page is a step of its walk: run, or left out with
a reason that is printed. Steps are data; `hour.py` does them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Output = Literal["all", "stdout", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run a block of the page, counted from 1 over all its code blocks.

    `put`: texts of the page that stand for the reader's own, and what this machine has there;
    `{home}` in them is the user's home. `before` and `after` complete a block of Python, also one
    of another `language` that is made a Python text by them. `page`: another page than the walk's.
    `shown`: which of its output belongs to the transcript, and `keep_from`, from which text on.
    """

    block: int
    page: str = ""
    put: Mapping[str, str] = field(default_factory=dict)
    before: str = ""
    after: str = ""
    language: str = ""
    exit_code: int = 0
    shown: Output = "all"
    keep_from: str = ""
    in_clone: bool = False
    timeout_s: float = 300.0

    @property
    def title(self) -> str:
        """Head its part of the transcript."""
        return f"block {self.block}" + (f" of {self.page}" if self.page else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """A command that is typed beside the page's blocks: one of its text, or a wrong turn.

    `terminal`: on a terminal of 80 columns, else into a pipe. `until`: typed again until the
    output has this text. `varying`: patterns of what chance decides in it, such as how much had
    landed by then, and what the transcript has in their place; a pattern is as narrow as it can be,
    so that nothing else passes for it.
    """

    command: str
    exit_code: int = 0
    terminal: bool = False
    until: str = ""
    varying: Mapping[str, str] = field(default_factory=dict)
    shown: Output = "all"
    keep_from: str = ""
    in_clone: bool = False
    timeout_s: float = 300.0

    @property
    def title(self) -> str:
        """Head its part of the transcript."""
        return f"$ {self.command}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start what does not end, a block or a command, and wait until it prints `ready`."""

    block: int = 0
    command: str = ""
    ready: str
    put: Mapping[str, str] = field(default_factory=dict)
    in_clone: bool = False

    @property
    def title(self) -> str:
        """Head its part of the transcript."""
        name = f"block {self.block}" if self.block else f"$ {self.command}"
        return f"{name}, which goes on"


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Press Ctrl-C where the last `Start` runs; it ends with this exit code."""

    exit_code: int = 0

    @property
    def title(self) -> str:
        """Head its part of the transcript."""
        return f"Ctrl-C: exit code {self.exit_code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """Write a block of the page into a file of the user's folder."""

    block: int
    file: str
    put: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Head its part of the transcript."""
        return f"block {self.block} is saved as {self.file}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """Run a block of SQL in Spark with Iceberg's own runtime, as `read-the-table.md` sets it up."""

    block: int
    put: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Head its part of the transcript."""
        return f"block {self.block}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The block is not run here, and why."""

    block: int
    reason: str

    @property
    def title(self) -> str:
        """Head its part of the transcript."""
        return f"block {self.block} is left out: {self.reason}"


Step = Run | Type | Start | Interrupt | Save | Sql | LeftOut


@dataclass(frozen=True, slots=True)
class Walk:
    """One page, walked in a home of its own, with these variables set beside the usual ones."""

    page: str
    steps: Sequence[Step]
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of its transcript."""
        return self.page.rpartition("/")[2].removesuffix(".md").lower()

    def blocks(self) -> list[int]:
        """Return the numbers of the blocks that its steps name."""
        named = [step for step in self.steps if not isinstance(step, Type | Interrupt)]
        ours = [step for step in named if not (isinstance(step, Run) and step.page)]
        return [step.block for step in ours if step.block]
