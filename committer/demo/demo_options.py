"""The options of a run of the demo, and the folder that holds all of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import SettingsError
from committer.service.process.redis_server import private_server_url
from committer.settings import default_places

_ROWS_PER_BATCH_MIN = 2_000
_BATCHES_MAX = 15
_BATCHES_MIN = 3


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """`batches`: micro-batches of each stream. `redis_url`: None for a private server. `catalog`:
    None for a new one in a file. `upsert`: the second act follows the first.
    """

    home: Path
    rows: int
    streams: int
    applications: int
    batches: int
    redis_url: str | None = None
    catalog: CatalogProperties | None = None
    upsert: bool = False


def default_batches(rows: int, streams: int) -> int:
    """Return how many micro-batches to make: few rows make fewer, many make larger ones."""
    return min(_BATCHES_MAX, max(_BATCHES_MIN, rows // streams // _ROWS_PER_BATCH_MIN))


def default_home(now_ms: int) -> Path:
    """Name a new folder below the current one by the time."""
    time = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone()
    first = Path("demo-data").absolute() / time.strftime("%Y-%m-%d-%H%M%S")
    home, number = first, 1
    while home.exists():
        number += 1
        home = first.with_name(f"{first.name}-{number}")
    return home


def make_home(home: Path) -> None:
    """Make the folder. Errors: `SettingsError` if it holds something:
    no file of a user is ever overwritten."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        if any(home.iterdir()):
            raise SettingsError(
                f"--home: `{home}` is not empty: name a new folder, or remove this one first"
            )
    except OSError as error:
        raise SettingsError(f"--home: `{home}`: {error.strerror}") from error


def queue_folder(home: Path) -> Path | None:
    """Return the folder of the private queue server; None if it is too long for a unix socket."""
    folder = default_places.queue_folder(home)
    try:
        private_server_url(folder)
    except SettingsError:
        return None
    return folder
