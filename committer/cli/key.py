"""`frazil key`: create keys that sign requests."""

from __future__ import annotations

from typing import Annotated

import typer

from committer.cli.context.command_session import checked
from committer.errors import SettingsError

app = typer.Typer(help="Create keys that requests are signed with.", no_args_is_help=True)

_SECRET_BYTES = 32


@app.callback()
def _key() -> None:
    """Create keys that requests are signed with."""


def _checked_id(text: str) -> str:
    from committer.request.request_model import Name

    key_id: str = checked(Name, text)
    return key_id


@app.command()
def new(
    key_id: Annotated[str, typer.Argument(callback=_checked_id, help="Its name: spark-2026-11.")],
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Only for tables like this: 'db.*'.")
    ] = None,
    producer: Annotated[
        list[str] | None, typer.Option("--producer", help="Only for producers like this.")
    ] = None,
    operation: Annotated[
        list[str] | None, typer.Option("--operation", help="Only for this operation: append.")
    ] = None,
) -> None:
    """Print a new key, to be appended to a file of keys.

    Committers and Spark drivers find that file by the setting security.keys. Options may be given
    more than once; in patterns `*` stands for any text.
    """
    import os

    from committer.request.signature import parse_keys

    patterns = {"tables": table, "producers": producer, "operations": operation}
    lines = [f"[keys.{_quoted(key_id)}]", f'secret = "{os.urandom(_SECRET_BYTES).hex()}"']
    lines += [
        f"{name} = [{', '.join(map(_quoted, given))}]" for name, given in patterns.items() if given
    ]
    text = "\n".join(lines) + "\n"
    try:
        parse_keys(text.encode(), "the key")
    except SettingsError as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(text)


def _quoted(text: str) -> str:
    """Print a TOML string, or key."""
    import json

    return json.dumps(text, ensure_ascii=False)
