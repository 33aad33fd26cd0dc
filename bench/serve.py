"""`frazil serve` with delayed storage: the same service, composed of the same parts.

Only for measurements with a delay; all others run the command itself. The delay in milliseconds is
the one argument.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from dataclasses import replace

from bench.delay import delayed
from committer.service.process.composition import RequestParts, open_request_parts
from committer.service.process.startup import serve_parts
from committer.service.telemetry.log import configure_logs
from committer.settings.service_settings import load_settings


async def serve(delay_ms: int) -> None:
    settings = load_settings()
    configure_logs(settings.service.log_format, settings.service.log_level)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    parts = with_delay(open_request_parts(settings), delay_ms)
    try:
        await serve_parts(parts, stop)
    finally:
        await parts.close()


def with_delay(parts: RequestParts, delay_ms: int) -> RequestParts:
    """Return the same parts on a storage whose every call takes longer."""
    storages = replace(
        parts.storages,
        of_tables=delayed(parts.storage, delay_ms),
        own=delayed(parts.own_storage, delay_ms),
    )
    return replace(parts, storages=storages)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
