"""Fetches `/status` of a running committer over HTTP, and lays it out for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from pydantic import ValidationError

from committer.cli.output.describe import Description
from committer.cli.output.printing import age_text, counted
from committer.cli.output.view import Facts, Rows, View
from committer.errors import SettingsError
from committer.ports.queue import SHARDS
from committer.service.process.status_model import (
    InboxStatus,
    MemberStatus,
    OpenBreakerStatus,
    QueueStatus,
    ShardsStatus,
    Status,
    TableStatus,
)
from committer.settings.service_settings import Settings
from committer.settings.setting_names import setting_text

_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an address: the committer's status, or why there is none."""

    url: str
    status: Status | None
    why: str | None = None

    @property
    def members(self) -> list[MemberStatus]:
        """Return those that share the shards, as the committer saw them last."""
        shards = self.status.shards if self.status else None
        return shards.members if shards else []


def ask_committer(url: str) -> Answer:
    """Ask the committer at an address such as `http://host:8181`.

    Errors: `SettingsError` where that is no address.
    """
    address = url if "://" in url else f"http://{url}"
    try:
        code, content = _get(address)
    except OSError as error:
        return Answer(address, None, error.strerror or str(error) or type(error).__name__)
    except HTTPException as error:
        return Answer(address, None, f"{type(error).__name__}: {error}")
    try:
        return Answer(address, Status.model_validate_json(content))
    except ValidationError:
        return Answer(address, None, _no_status(code))


def _no_status(code: int) -> str:
    if code == HTTPStatus.FORBIDDEN:
        return (
            "it does not serve this name (HTTP 403): ask by an IP address, or add the name to its"
            f" {setting_text('service.http_names')}"
        )
    return f"what answers there is no committer (HTTP {code})"


def ask_own_committer(settings: Settings) -> Answer | None:
    """Ask the committer that these settings belong to. None if its endpoints are switched off."""
    service = settings.service
    if service.http_port == 0:
        return None
    host = "127.0.0.1" if service.http_host in ("0.0.0.0", "::") else service.http_host  # noqa: S104  # compared only
    answer = ask_committer(f"http://{host}:{service.http_port}")
    said = answer.status
    if said is None or (said.catalog, said.inbox.location) == (
        settings.catalog.name,
        settings.inbox,
    ):
        return answer
    other = f"another committer answers: catalog `{said.catalog}`, inbox {said.inbox.location}"
    return Answer(answer.url, None, other)


def conditions_of(answer: Answer, requests: int | None) -> dict[str, str]:
    """Return what is wrong, by component. `requests` wait in the inbox; None if they were not
    counted: then the command asked for the committer alone.
    """
    if answer.status is not None:
        return {f"committer, {one}": why for one, why in answer.status.conditions.items()}
    if requests is None:
        return {"committer": f"none answers at {answer.url}: {answer.why}"}
    if requests == 0:
        return {}
    waiting = "1 request waits" if requests == 1 else f"{requests} requests wait"
    return {"committer": f"{waiting}, and none answers at {answer.url}: {answer.why}"}


def _get(address: str) -> tuple[int, bytes]:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError(f"`{address}`: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise SettingsError(f"`{address}`: expected http://host:port or https://host:port")
    # Without the environment's proxies: a committer is on this machine or in this network.
    connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = connect(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", parts.path.rstrip("/") + "/status")
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def describe_answer(answer: Answer, table: str | None) -> Description:
    """Describe the answer as JSON. With a name, that table alone."""
    said = None
    if answer.status is not None:
        said = answer.status.model_dump()
        said["tables"] = [one.model_dump() for one in _tables(answer.status, table)]
    return {"url": answer.url, "status": said, "why": answer.why}


def _tables(status: Status, table: str | None) -> list[TableStatus]:
    return [one for one in status.tables if table is None or one.table == table]


# --- For people ----------------------------------------------------------------------------------

_HEADERS = (
    *("table", "lag", "in hand", "commits", "requests", "files", "rows"),
    *("conflicts", "unknown", "duplicates", "metadata bytes", "last commit"),
)


def answer_views(answer: Answer, table: str | None) -> list[View]:
    """Show all that a committer says, for a caller that can ask nothing else."""
    return [Facts("committer", answer_facts(answer)), *table_views(answer, table)]


def answer_facts(answer: Answer) -> Description:
    """Return the facts of a committer, with those that it alone is asked for."""
    facts, status = committer_facts(answer), answer.status
    if status is not None:
        facts |= {
            "catalog": status.catalog,
            "inbox": _inbox_text(status.inbox, status.now_s),
            "queue": _queue_text(status.queue),
            "quarantine": _quarantine_text(status),
        }
    return facts


def table_views(answer: Answer, table: str | None) -> list[View]:
    status = answer.status
    if status is None:
        return []
    rows = [_row(one, status.now_s) for one in _tables(status, table)]
    return [Rows("tables, since the committer has started", _HEADERS, rows)] if rows else []


def committer_facts(answer: Answer, quarantined: int | None = None) -> Description:
    """Return the facts that only a committer knows. `quarantined`: how many requests were found
    there; their reasons are shown if the committer knows as many.
    """
    status = answer.status
    if status is None:
        return {"committer": f"none answers at {answer.url}: {answer.why}"}
    facts: Description = {
        "committer": f"{status.phase}, {'ready' if status.ready else 'not ready'}, at {answer.url},"
        f" version {status.version}",
        "lag": lag_text(status),
        "shards": _shards_text(status.shards),
        "missed doorbells": status.missed_doorbells,
    }
    if quarantined and sum(status.quarantine.values()) == quarantined:
        facts["reasons in quarantine"] = _quarantine_text(status)
    if status.open_breakers:
        facts["open circuit breakers"] = ", ".join(map(_breaker_text, status.open_breakers))
    frozen = {one.table: one.frozen_producers for one in status.tables if one.frozen_producers}
    if frozen:
        facts["frozen producers"] = _by_text(frozen)
    if any(status.internal_errors.values()):
        facts["internal errors"] = _by_text(status.internal_errors)
    return facts


def lag_text(status: Status) -> str:
    """Return the ages of the oldest requests, by cause."""
    if status.lag_s is None:
        return "not known: the inbox has not been listed yet"
    waits = f"{_age(status.lag_s)}: the age of the oldest request that waits"
    return f"{waits if status.lag_s else 'no request waits'}{_not_waiting_text(status)}"


def _not_waiting_text(lag: Status | TableStatus) -> str:
    """Return the age of the oldest request that is held, and of the oldest that is unavailable."""
    ages_s = {"held": lag.held_s, "unavailable": lag.unavailable_s}
    return "".join(f"; {cause} for {_age(age_s)}" for cause, age_s in ages_s.items() if age_s)


def _table_lag_text(table: TableStatus) -> str:
    waits = _age(table.lag_s) if table.lag_s else ""
    return f"{waits}{_not_waiting_text(table)}".removeprefix("; ")


def _inbox_text(inbox: InboxStatus, now_s: float) -> str:
    if inbox.requests is None or inbox.listed_s is None:
        return f"{inbox.location}: not listed yet"
    seen = f"listed {_age(now_s - inbox.listed_s)} ago"
    foreign = sum(inbox.foreign.values())
    beside = f", foreign entries: {foreign}" if foreign else ""
    return f"{inbox.location}: {counted(inbox.requests, 'request')}{beside}, {seen}"


def _queue_text(queue: QueueStatus) -> str:
    if queue.waiting is None:
        return "not known"
    return f"{queue.waiting} waiting, {queue.pending} of them handed out"


def _quarantine_text(status: Status) -> str:
    counts = _by_text(status.quarantine)
    if not counts:
        return "empty"
    age_s = status.quarantine_age_s
    return counts if age_s is None else f"{counts}; the oldest for {_age(age_s)}"


def _breaker_text(one: OpenBreakerStatus) -> str:
    return (
        f"{one.producer} of {one.table} ({one.failures} times {one.reason}, tried again in"
        f" {_age(one.again_s)})"
    )


def _shards_text(shards: ShardsStatus | None) -> str:
    if shards is None:
        return "not known"
    return f"{shards.owned} of {SHARDS}; {members_text(shards.members) or 'alone, without a queue'}"


def _state(member: MemberStatus) -> str:
    if member.is_leaving:
        return " (leaving)"
    return " (cut off)" if member.is_cut_off else ""


def members_text(members: Sequence[MemberStatus]) -> str:
    """List the committers that share the shards, and how many each has; empty if there is none."""
    each = (f"{one.name} {one.shards}{_state(one)}" for one in members)
    return f"{counted(len(members), 'committer')}: {', '.join(each)}" if members else ""


def _by_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()) if number)


def _age(age_s: float) -> str:
    return age_text(int(age_s * 1000))


def _row(one: TableStatus, now_s: float) -> tuple[object, ...]:
    return (
        one.table,
        _table_lag_text(one),
        one.pending_requests,
        *(one.commits, one.requests, one.files, one.rows),
        *(one.swaps.get("conflict", 0), one.swaps.get("unknown", 0), one.duplicates),
        one.metadata_bytes,
        "" if one.last_commit_s is None else f"{_age(now_s - one.last_commit_s)} ago",
    )
