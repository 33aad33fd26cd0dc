"""Everybody but the committers: producers, other engines, operators. Their own code, our wire.

An actor is begun anew after each crash: what it keeps on itself is durable, what `run` holds in
its locals is not.
"""

from __future__ import annotations

from typing import Protocol

from committer.errors import FrazilError
from tests.simulation.ports import Ports, open_ports
from tests.simulation.process import Life
from tests.simulation.servers import Servers


class Actor(Protocol):
    """Acts until its part is done. Time, ids and chance come from `ports.world`."""

    @property
    def name(self) -> str: ...

    async def run(self, ports: Ports) -> None:
        """Play the part, or the rest of it. A `FrazilError` ends this life, and another begins."""


class ActorBody:
    """The body of an actor's process."""

    def __init__(self, actor: Actor, servers: Servers) -> None:
        self._actor = actor
        self._servers = servers

    async def run(self, life: Life) -> None:
        try:
            await self._actor.run(open_ports(life, self._servers))
        except FrazilError as error:
            life.process.stage.trace.add(life.process.name, "gives up", f"{error}"[:60])
            life.process.comes_back = True

    def stop(self) -> None:
        """Do nothing: the actor ends with its last act only."""

    def ended(self) -> None:
        """Do nothing: the actor keeps no state of a life."""

    def restart_otherwise(self, chance: float) -> None:
        """Do nothing: the actor has no settings."""
