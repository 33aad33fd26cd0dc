"""Small steps that need asyncio: writing and sending a swap, and leaving the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import ParamSpec, TypeVar

from committer.errors import AlreadyExistsError, FrazilError, InvariantError
from committer.group_commit import finish_all
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.batch.request_check import ENTRY_BYTES
from committer.plan.ledger.state import TableState
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import GroupAnswer, Swap, SwapAnswer, Unknown
from committer.ports.storage import NewObject, Storage, create_or_equal

P = ParamSpec("P")
T = TypeVar("T")

# Below this a hop to a thread costs more than the work; above it the loop would miss its heartbeat.
OFF_LOOP_BYTES = 256 * 1024
# Each commit writes the rows of its manifest list and the history of its metadata, some 0.3 µs for
# each: a table of ten thousand of them takes milliseconds.
LISTED_BYTES = 64


async def send_swap(catalog: Catalog, swap: Swap) -> SwapAnswer:
    """Send the swap and await its answer, also if the caller is canceled meanwhile, however often:
    it may be applied. Then be canceled.

    Any exception but a `FrazilError` leaves open whether it was applied: `Unknown`. Errors: as
    `Catalog.swap`.
    """
    return await _send(catalog.swap(swap))


async def send_swaps(catalog: Catalog, swaps: Sequence[Swap]) -> GroupAnswer:
    """Send swaps of several tables together, as `send_swap` sends one.
    Errors: as `Catalog.swap_together`.
    """
    return await _send(catalog.swap_together(swaps))


async def _send(call: Coroutine[object, object, T]) -> T | Unknown:
    sent = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(sent)
    except asyncio.CancelledError:
        while not sent.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((sent,))
        if not sent.cancelled():
            sent.exception()  # else asyncio reports that none has asked for it
        raise
    except FrazilError:
        raise
    except Exception as error:  # noqa: BLE001  # a bug of the adapter: it may have been sent
        return Unknown(repr(error), error)


async def create_all(storage: Storage, objects: Sequence[NewObject]) -> None:
    """Create objects under names of ours in one round; copies of an earlier try are found equal.

    Errors: `InvariantError` where one of our names holds other content.
    """
    with suppress(AlreadyExistsError):
        await storage.create(objects)
        return
    try:
        await finish_all(create_or_equal(storage, created) for created in objects)
    except AlreadyExistsError as error:
        raise InvariantError(f"a name of ours is taken by something else: {error}") from error


def history_bytes(metadata: TableMetadata) -> int:
    """Return what writing or looking through a table's metadata counts as."""
    return LISTED_BYTES * (len(metadata.snapshots) + len(metadata.properties))


def selecting_bytes(state: TableState, branch: str) -> int:
    """Return what looking through the manifests of a branch counts as."""
    return LISTED_BYTES * state.listed_count(branch)


def weight_bytes(rows: Iterable[ManifestFile]) -> int:
    """Return what decoding these manifests counts as: their bytes, or their entries if these are
    more. Manifests of ten thousand files may take no more than 200 KiB. One whose row does not
    count its entries may hold any number of them."""
    return sum(map(_row_weight_bytes, rows))


def _row_weight_bytes(row: ManifestFile) -> int:
    if row.live_files_count is None:
        return OFF_LOOP_BYTES
    return max(
        row.manifest_length, ENTRY_BYTES * (row.live_files_count + (row.deleted_files_count or 0))
    )


async def off_loop_if_large(
    weight_bytes: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run pure work, in a thread if there is much of it.

    `weight_bytes`: of what it may have to inflate and decode, not of what is stored.
    """
    if weight_bytes < OFF_LOOP_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


async def in_slices(weight_bytes: int, slices: Iterator[None]) -> None:
    """Run background work that pauses after each slice: the loop goes on in between, or all the
    time if there is much of it (`weight_bytes`: as above). A cancellation ends it after the slice
    in hand.
    """
    if weight_bytes < OFF_LOOP_BYTES:
        for _ in slices:
            await asyncio.sleep(0)
        return
    given_up = threading.Event()
    try:
        await asyncio.to_thread(_run_slices, slices, given_up)
    finally:
        given_up.set()


def _run_slices(slices: Iterator[None], given_up: threading.Event) -> None:
    for _ in slices:
        if given_up.is_set():
            return
        # Lets the event loop have the interpreter, if it waits for it.
        time.sleep(0)
