"""Publishes the changes of a command, waits for the receipt, and prints the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from committer.cli.context.command_session import (
    checked,
    parse_identifier,
    require_branch,
    run_with_parts,
)
from committer.cli.context.common_options import TIMEOUT_OPTION, AsJson, Timeout
from committer.cli.context.operator_audit import ReasonOption, audit_trail
from committer.cli.output.durations import parse_duration_ms
from committer.cli.output.printing import print_json, say

if TYPE_CHECKING:
    from committer.ports.pointer_swap import LoadedTable
    from committer.request.alterations import TableChange
    from committer.request.needs import Needs, Operation
    from committer.request.receipt_model import Receipt
    from committer.service.process.composition import Parts

_PATIENT_S = 3.0


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """The options of how to wait, how to answer, and why the change is made."""

    timeout: Timeout = "60s"
    as_json: AsJson = False
    reason: ReasonOption = None

    def __post_init__(self) -> None:
        parse_duration_ms(self.timeout, TIMEOUT_OPTION)

    @property
    def timeout_s(self) -> float:
        return parse_duration_ms(self.timeout, TIMEOUT_OPTION) / 1_000


@dataclass(frozen=True, slots=True)
class Order:
    """The work of a command: changes of a table, or an operation with its needs.

    `command` is its name in the audit; `done` is what is said once it is done.
    """

    command: str
    table: str
    done: str
    changes: Sequence[Mapping[str, object]] = ()
    branch: str = "main"
    operation: Operation = "alter"
    needs: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class _Sent:
    key: str
    receipt: Receipt | None


def send(order: Order, waiting: WaitOptions) -> None:
    """Publish a request, and wait. Exit code 1: it was refused, or waits still.

    Errors: `typer.BadParameter` for a change that no table could take.
    """
    changes, needs = parse_changes(order.changes), _needs(order.needs)
    identifier = parse_identifier(order.table)

    async def work(parts: Parts) -> _Sent:
        table = await parts.catalog.load(identifier)
        require_branch(table, order.branch, nothing="changed")
        return await _recorded(parts, table, order, waiting, changes, needs)

    _say_end(order, run_with_parts(work), waiting)


def parse_changes(documents: Sequence[Mapping[str, object]]) -> tuple[TableChange, ...]:
    """Read changes as a request has them. Errors: `typer.BadParameter`."""
    from committer.request.alterations import TableChanges

    changes: tuple[TableChange, ...] = checked(TableChanges, tuple(documents))
    return changes


def _needs(said: Mapping[str, object] | None) -> Needs:
    """Read needs as a request has them. Errors: `typer.BadParameter`."""
    from committer.request.needs import Needs

    # A change that cannot be made is told to the one who asks: it is not kept for a replay.
    needs: Needs = checked(Needs, {**(said or {}), "on-conflict": "fail"})
    return needs


async def _recorded(
    parts: Parts,
    table: LoadedTable,
    order: Order,
    waiting: WaitOptions,
    changes: tuple[TableChange, ...],
    needs: Needs,
) -> _Sent:
    """Publish, with the outcome in the audit. The commit has an entry of its own, which says what
    it has changed.
    """
    from committer.request.receipt_model import ReceiptState
    from committer.service.admin.recorded_change import Change

    change = Change(
        order.command,
        table=order.table,
        table_uuid=str(table.metadata.table_uuid),
        branch=order.branch,
    )
    async with audit_trail(parts, waiting.reason).recorded(change):
        sent = await _published(parts, table, order, changes, needs, waiting.timeout_s)
        state = "waiting" if sent.receipt is None else sent.receipt.state.value
        change.after = {"request": sent.key, "state": state}
        if sent.receipt is not None and sent.receipt.state is not ReceiptState.COMMITTED:
            change.refused = sent.receipt.message or state
    return sent


async def _published(
    parts: Parts,
    table: LoadedTable,
    order: Order,
    changes: tuple[TableChange, ...],
    needs: Needs,
    timeout_s: float,
) -> _Sent:
    from committer.service.admin.operator_requests import OperatorRequests
    from committer.service.upkeep.own_requests import OwnRequests

    name = parts.settings.catalog.name
    own = OwnRequests(name, parts.inbox, parts.queue, parts.key_file, parts.world)
    requests = OperatorRequests(own, parts.quarantine)
    published = await requests.publish(
        table, operation=order.operation, branch=order.branch, changes=changes, needs=needs
    )
    key = published.request.inbox_key
    if timeout_s == 0:
        return _Sent(key, None)
    first_s = min(_PATIENT_S, timeout_s)
    receipt = await requests.wait(published, timeout_s=first_s)
    if receipt is None and first_s < timeout_s:
        say(
            f"frazil: {table.identifier}: the request is durable and waits for a committer; if none"
            " runs, `frazil serve` starts one"
        )
        receipt = await requests.wait(published, timeout_s=timeout_s - first_s)
    return _Sent(key, receipt)


def _say_end(order: Order, sent: _Sent, waiting: WaitOptions) -> None:
    from committer.request.receipt_model import ReceiptState

    receipt = sent.receipt
    if waiting.as_json:
        print_json(_described(order, sent))
    if receipt is None:
        say(
            f"frazil: {order.table}: the request waits, and is carried out once a committer gets to"
            " it: see `frazil status`"
        )
        if waiting.timeout_s:
            raise typer.Exit(1)
    elif receipt.state is ReceiptState.COMMITTED:
        say(f"{order.table}: {order.done}")
    else:
        message = (receipt.message or "").removeprefix(f"{receipt.conflict}: ")
        say(f"frazil: {order.table}: refused: {message}")
        raise typer.Exit(1)


def _described(order: Order, sent: _Sent) -> dict[str, object]:
    receipt = sent.receipt
    described: dict[str, object] = {
        "table": order.table,
        "branch": order.branch,
        "request": sent.key,
        "state": "waiting" if receipt is None else receipt.state.value,
    }
    if receipt is not None and receipt.reason is not None:
        described |= {
            "reason": receipt.reason,
            "conflict": receipt.conflict,
            "message": receipt.message,
        }
    return described
