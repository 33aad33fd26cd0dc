"""All committers that share the shards, as `frazil status` shows them: each is asked by itself, at
the status URL that its lease names.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from committer.cli.committers.committer_status import Answer, ask_committer, lag_text
from committer.cli.output.describe import Description
from committer.cli.output.view import Rows
from committer.errors import SettingsError
from committer.service.process.status_model import MemberStatus
from committer.url_text import is_loopback

_ASKED_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Replica:
    """A member of the leases, and its answer. `is_asked`: it is the one that the command asks
    first. `answer`: None where there is nowhere to ask.
    """

    member: MemberStatus
    is_asked: bool
    answer: Answer | None

    @property
    def why_not(self) -> str:
        """Return why its state is not known; empty where it is."""
        if self.answer is None:
            return "it has no status URL: service.http_port is 0, or its release is earlier"
        return "" if self.answer.status else f"{self.answer.url}: {self.answer.why}"

    @property
    def conditions(self) -> dict[str, str]:
        """Return what is wrong with it, by component, unless the command says it of the one that
        it asked. A committer that only its own machine reaches may be well.
        """
        if self.is_asked or self.answer is None:
            return {}
        name, status = f"committer {self.member.name}", self.answer.status
        if status is not None:
            return {f"{name}, {component}": why for component, why in status.conditions.items()}
        if is_loopback(urlsplit(self.answer.url).hostname or ""):
            return {}
        return {name: f"it renews its lease, but does not answer at {self.why_not}"}


def ask_replicas(members: Sequence[MemberStatus], asked: Answer | None) -> list[Replica]:
    """Ask all members, on some at once. `asked`: the committer that has answered already."""
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as threads:
        return list(threads.map(lambda member: _replica(member, asked), members))


def _replica(member: MemberStatus, asked: Answer | None) -> Replica:
    status = None if asked is None else asked.status
    name = status.shards.member if status and status.shards else None
    if asked is not None and (name == member.name or asked.url == member.status_url):
        return Replica(member, is_asked=True, answer=asked)
    return Replica(member, is_asked=False, answer=_ask(member))


def _ask(member: MemberStatus) -> Answer | None:
    url = member.status_url
    if url is None:
        return None
    try:
        answer = ask_committer(url)
    except SettingsError as error:
        return Answer(url, None, str(error))
    name = answer.status.shards.member if answer.status and answer.status.shards else None
    if name in (None, member.name):
        return answer
    return Answer(url, None, f"another committer answers: `{name}`; set its service.status_url")


def describe_replicas(replicas: Sequence[Replica]) -> list[Description]:
    """Describe each committer as JSON. `status` is null where it did not answer, and `why` says
    why.
    """
    return [_describe(replica) for replica in replicas]


def _describe(replica: Replica) -> Description:
    status = replica.answer.status if replica.answer else None
    return {
        **replica.member.model_dump(),
        "status": None
        if status is None
        else {
            "version": status.version,
            "phase": status.phase,
            "ready": status.ready,
            "lag_s": status.lag_s,
            "conditions": status.conditions,
        },
        "why": replica.why_not or None,
    }


_HEADERS = ("committer", "shards", "state", "lag", "conditions", "version", "status URL")


def replica_view(replicas: Sequence[Replica]) -> Rows:
    """Show one row for each committer."""
    return Rows("committers", _HEADERS, [_row(replica) for replica in replicas])


def _row(replica: Replica) -> tuple[object, ...]:
    member, status = replica.member, replica.answer.status if replica.answer else None
    leaving = " (leaving)" if member.is_leaving else ""
    cells: tuple[object, ...] = (f"not known{leaving}: {replica.why_not}", "", "", "")
    if status is not None:
        state = f"{status.phase}, {'ready' if status.ready else 'not ready'}{leaving}"
        conditions = ", ".join(status.conditions) or "none"
        cells = state, lag_text(status), conditions, status.version
    return member.name, member.shards, *cells, member.status_url
