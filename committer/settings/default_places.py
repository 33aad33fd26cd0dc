"""The default locations below `<home>`.

Committer and Spark drivers share this. Nothing is made here.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

HOME = "~/.frazil"
SOCKET = "redis.sock"


def catalog_file(home: Path) -> Path:
    return home / "catalog.db"


def catalog_uri(home: Path) -> str:
    return f"sqlite:///{catalog_file(home)}"


def inbox(home: Path) -> str:
    return f"file://{home}/requests"


def warehouse(home: Path) -> str:
    """Return the folder of new tables."""
    return f"file://{home}/warehouse"


def queue_folder(home: Path) -> Path:
    """Return the folder of the private queue server."""
    return home / "queue"


def socket_url(folder: Path) -> str:
    return f"unix://{quote(str(folder / SOCKET))}"
