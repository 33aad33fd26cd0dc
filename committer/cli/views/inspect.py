"""`frazil inspect`: print the content of an Iceberg metadata file or a commit request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from committer.cli.context.command_session import run_with_requests
from committer.cli.context.common_options import AsJson
from committer.cli.output.printing import print_json_lines, show
from committer.errors import FrazilError


def inspect(
    file: Annotated[str, typer.Argument(help="A path, or a location: file:/…, s3://…")],
    as_json: AsJson = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Also show the column metrics of each file.")
    ] = False,
) -> None:
    """Show table metadata, a manifest list, a manifest, a Puffin footer or a commit request.

    The file is recognized by its content. With --json there is one object a line, with a `kind`,
    and column metrics are always there. Exit code 1 if it is broken.
    """
    from committer.cli.views.file_report import inspect_content, without_details

    content = _read(file)
    try:
        found = inspect_content(content)
    except FrazilError as error:
        raise type(error)(f"{file}: {error}") from error
    if as_json:
        print_json_lines(found.lines)
    else:
        show(found.views if metrics else without_details(found.views))
    if found.problem is not None:
        typer.echo(f"frazil: {file}: {found.problem}", err=True)
        raise typer.Exit(1)


def _read(file: str) -> bytes:
    """Read a path, which may be relative, or a location as the storage adapters read it."""
    from committer.storage.disk.local_files import read

    if file.lower().startswith("file:"):
        return read(file, 0, None)
    if "://" in file:
        return run_with_requests(lambda parts: parts.own_storage.get(file))
    return read(str(Path(file).absolute()), 0, None)
