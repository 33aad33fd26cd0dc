"""The ports of a process's life, each with its faults and its onlookers."""

from __future__ import annotations

from dataclasses import dataclass

from committer.ports.catalog import Catalog
from committer.ports.leases import Leases
from committer.ports.queue import Queue
from committer.ports.storage import Storage
from committer.storage.inbox.inbox import Inbox, Quarantine
from committer.storage.inbox.replays import Replays
from tests.simulation.catalogs import SimCatalog, VersionedStorage, open_client
from tests.simulation.faulty_ports import FaultyLeases, FaultyQueue, FaultyStorage
from tests.simulation.history import History
from tests.simulation.observed import ObservedQueue, ObservedStorage
from tests.simulation.process import Life
from tests.simulation.servers import INBOX, Servers, SimQueue
from tests.simulation.world import SimWorld
from tests.support.memory.memory_queue import MemoryLeases


@dataclass(frozen=True, slots=True)
class Ports:
    """One life's way to the servers, and what stands on it."""

    world: SimWorld
    storage: Storage
    catalog: Catalog
    queue: Queue
    leases: Leases
    inbox: Inbox
    quarantine: Quarantine
    replays: Replays
    history: History


def open_ports(life: Life, servers: Servers) -> Ports:
    """Connect a life to the servers."""
    history, name = life.process.stage.history, life.process.name
    is_versioned = servers.kind is SimCatalog.FILES
    observed = VersionedStorage if is_versioned else ObservedStorage
    storage = FaultyStorage(life, observed(servers.storage, history, name))
    client = SimQueue(servers.queue, consumer=name)
    queue = FaultyQueue(life, ObservedQueue(client, history, name), client.unsee)
    leases = MemoryLeases(servers.queue, member=name, process=life.world.uuid())
    return Ports(
        world=life.world,
        storage=storage,
        catalog=open_client(servers.kind, life, servers.catalog, history, storage),
        queue=queue,
        leases=FaultyLeases(life, leases),
        inbox=Inbox(storage, INBOX),
        quarantine=Quarantine(storage, INBOX),
        replays=Replays(storage, INBOX),
        history=history,
    )
