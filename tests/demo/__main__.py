"""The demo on a catalog server of its own: `make demo CATALOG=rest`.

    python -m tests.demo postgres --rows 20000

The servers are those of the tests, so this is no part of the product: it starts one, runs `frazil
demo --catalog` beside it, and stops it. What the product knows of the catalog is its properties, by
PyIceberg's variables, as a user would give them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

import pytest

from committer.service.process.child_process import ends_with_parent
from tests.support.builders.jars import FOLDER
from tests.support.servers.hive_server import running_hive
from tests.support.servers.postgres_server import running_postgres
from tests.support.servers.rest_server import running_rest_server

Properties = dict[str, str]


@contextmanager
def _rest() -> Iterator[Properties]:
    _say("starting Iceberg's REST catalog for tests, release 1.11", jars="rest-fixture")
    with running_rest_server() as server:
        yield {"type": "rest", "uri": server.url}


@contextmanager
def _postgres() -> Iterator[Properties]:
    _say("starting PostgreSQL")
    with running_postgres() as server:
        yield {"type": "sql", "uri": server.uri(server.new_database())}


@contextmanager
def _hive() -> Iterator[Properties]:
    _say("starting PostgreSQL, and a Hive metastore 4.0.1 on it", jars="hive-metastore")
    with running_postgres() as postgres, running_hive(postgres) as server:
        yield {"type": "hive", "uri": server.uri}


SERVERS: Mapping[str, Callable[[], AbstractContextManager[Properties]]] = {
    "hive": _hive,
    "postgres": _postgres,
    "rest": _rest,
}


def main(arguments: Sequence[str]) -> int:
    """Run the demo on the named catalog. Return the exit code of `frazil demo`; 2 for a name that
    is not known, 130 where Ctrl-C ends the start of a server.
    """
    name, *options = arguments or [""]
    if name not in SERVERS:
        return _refuse(f"CATALOG={name}: expected one of {', '.join(SERVERS)}", 2)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with SERVERS[name]() as properties:
            return _run_demo(name, properties, options)
    except KeyboardInterrupt:
        return _refuse("stopped", 128 + signal.SIGINT)
    except pytest.skip.Exception as missing:
        # How a server says that this machine lacks a program: a test would be skipped for it.
        return _refuse(f"CATALOG={name}: {missing}", 1)


def _run_demo(name: str, properties: Properties, options: Sequence[str]) -> int:
    """Run `frazil demo` to its end: Ctrl-C is for it to answer, while the servers go on."""
    command = [sys.executable, "-m", "committer", "demo", "--catalog", name, *options]
    variables = {
        f"PYICEBERG_CATALOG__{name.upper()}__{key.upper()}": text
        for key, text in properties.items()
    }
    environment = {key: text for key, text in os.environ.items() if not _is_ours(key)}
    demo = subprocess.Popen(ends_with_parent(command), env=environment | variables)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: demo.send_signal(received))
    code = demo.wait()
    return code if code >= 0 else 128 - code


def _is_ours(variable: str) -> bool:
    """Return whether a variable could name another catalog than the one that was started."""
    return variable.upper().startswith(("FRAZIL_CATALOG__", "FRAZIL_CONFIG", "PYICEBERG_"))


def _say(text: str, *, jars: str = "") -> None:
    fetched = not jars or (FOLDER / jars).is_dir()
    print(text if fetched else f"{text}; its jars are fetched by Maven once", flush=True)


def _refuse(text: str, code: int) -> int:
    print(f"frazil: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
