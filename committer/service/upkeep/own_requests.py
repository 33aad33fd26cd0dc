"""Publishes requests of the service's own: what an operator asks for, and upkeep that rewrites
files. A committer, this one or another, lands them in their turn like those of any producer.

Each request is of a one-shot producer that never publishes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from committer.errors import AccessError, QueueUnavailableError
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell, Queue
from committer.ports.world import World
from committer.request.alterations import TableChange
from committer.request.attempt import attempt_of, timed_nonce
from committer.request.commit_request import CommitRequest, Fingerprint, Producer
from committer.request.needs import Needs, Operation
from committer.request.request_format import (
    EncodedRequest,
    InlineManifest,
    inline_references,
    line_digest,
)
from committer.request.transaction import TableName
from committer.service.requests.signature_check import IssuedRequests
from committer.storage.inbox.inbox import Inbox
from committer.storage.inbox.key_file import KeyFile
from committer.storage.inbox.signing import seal_signed


@dataclass(frozen=True, slots=True)
class Author:
    """The sender: the beginning of the producer's id, its name, and the kind of its fingerprint."""

    prefix: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class OwnRequests:
    """Publishes to the committers of one catalog. `queue` and `key_file` are None without one.
    `issued`: the memory of the process that lands them, if it is this one.
    """

    catalog_name: str
    inbox: Inbox
    queue: Queue | None
    key_file: KeyFile | None
    world: World
    issued: IssuedRequests | None = None

    def draft(
        self,
        author: Author,
        table: LoadedTable,
        *,
        operation: Operation,
        branch: str,
        needs: Needs,
        changes: Sequence[TableChange] = (),
    ) -> CommitRequest:
        """Return a request whose attempt is given: the names of files that it adds hold it."""
        table_uuid, world = table.metadata.require_uuid(), self.world
        nonce = timed_nonce(world.now_ms(), world.uuid())
        producer = f"{author.prefix}{nonce}"
        identifier = table.identifier
        return CommitRequest(
            catalog=self.catalog_name,
            table=TableName(namespace=identifier.namespace, name=identifier.name),
            table_uuid=table_uuid,
            branch=branch,
            producer=Producer(id=producer, name=author.name, one_shot=True),
            epoch=0,
            nonce=nonce,
            attempt=attempt_of(table_uuid, branch, producer, 0, nonce),
            fingerprint=Fingerprint(kind=author.kind, value=str(nonce)),
            published_at_ms=world.now_ms(),
            operation=operation,
            needs=needs,
            changes=tuple(changes),
        )

    async def publish(
        self, request: CommitRequest, manifests: Sequence[InlineManifest] = ()
    ) -> str | None:
        """Return once the request is durable: where its receipt comes, None if no committer was
        told. Errors: `PublishError` where no key may sign it; those of the inbox.
        """
        request = request.model_copy(update={"manifests": inline_references(manifests)})
        sealed = await seal_signed(self.key_file, request, manifests)
        if self.issued is not None:
            self.issued.add(sealed)
        await self.inbox.put(sealed)
        return await self._announce(sealed)

    async def _announce(self, sealed: EncodedRequest) -> str | None:
        """Ring the doorbell. Without one the committer finds the request by itself, later."""
        if self.queue is None:
            return None
        reply_to, request = str(self.world.uuid()), sealed.request
        doorbell = Doorbell(
            request.table_uuid,
            request.inbox_key,
            line_digest(sealed.content),
            sealed.content,
            reply_to,
        )
        try:
            await self.queue.announce((doorbell,))
        except (QueueUnavailableError, AccessError):
            return None
        return reply_to
