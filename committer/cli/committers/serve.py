"""`frazil serve`: run a committer until a signal stops it."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import CatalogName, explained, read_settings

if TYPE_CHECKING:
    from committer.settings.service_settings import Settings

# Of objects made, and of collections of the younger generations, before the next collection.
GARBAGE_THRESHOLDS = (20_000, 20, 20)


def serve(
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Of the health endpoints: before FRAZIL_SERVICE__HTTP_PORT."
        ),
    ] = None,
    home: Annotated[
        Path | None, typer.Option(help="The folder of everything: before FRAZIL_HOME.")
    ] = None,
    catalog: CatalogName = None,
) -> None:
    """Run a committer until SIGTERM or Ctrl-C; then finish the commits in flight."""
    import asyncio
    from functools import partial

    from committer.place_threads import PlaceLoop
    from committer.service.process.composition import make_home, start_private_queue
    from committer.service.process.last_exit import end_by
    from committer.service.process.startup import serve as run_service
    from committer.service.telemetry.log import configure_logs
    from committer.service.telemetry.log_stream import write_in_background
    from committer.stop_signals import StopRequest, end_at_once

    end_at_once()  # nothing is in flight before the loop, and a queue server ends with the process
    if home is not None:
        os.environ["FRAZIL_HOME"] = str(home.absolute())  # also the place of the settings file
    service = {} if port is None else {"service": {"http_port": port}}
    settings = read_settings(catalog=catalog, **service)
    write_in_background()
    configure_logs(settings.service.log_format, settings.service.log_level)
    # From the main thread and before the loop: the server ends with the thread that started it.
    with explained(settings):
        make_home(settings)
        server = start_private_queue(settings)
    told = StopRequest()
    opened = partial(_is_open, settings)
    end = partial(end_by, before=server.kill) if server else end_by
    try:
        with explained(settings), asyncio.Runner(loop_factory=PlaceLoop) as runner:
            runner.run(run_service(settings, told, opened=opened, queue_server=server, end_by=end))
    finally:
        told.outlive_loop()
        if server is not None:
            server.stop()


def _is_open(settings: Settings) -> None:
    """Keep what is in memory by now, a hundred thousand objects of modules, out of collections of
    garbage: each full one would hold the loop for some 30 ms more. Requests make few reference
    cycles: a collection at each 700th object takes a tenth of the committer's time.
    """
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    _say_where_things_are(settings)


def _say_where_things_are(settings: Settings) -> None:
    """Say where things are, to people only: a program that reads the log gets events."""
    if settings.service.log_format == "console":
        sys.stderr.write(f"{_where_things_are(settings)}\n")


def _where_things_are(settings: Settings) -> str:
    from committer.service.process.composition import queue_url
    from committer.url_text import without_secrets

    service, queue = settings.service, queue_url(settings)
    health = (
        f"http://{service.http_host}:{service.http_port}/readyz" if service.http_port else "off"
    )
    return (
        f"frazil: committing to catalog `{settings.catalog.name}`"
        f" ({settings.catalog.all_properties.shown_place}); inbox {settings.inbox};"
        f" queue {without_secrets(queue) if queue else 'none'}; health {health}; Ctrl-C drains and"
        " ends"
    )
