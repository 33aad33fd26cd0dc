"""Watches whether the places that every table needs answer: the storage, the inbox, the catalog.

A call that has no answer for `SUSPECT_S`, or that failed without one, makes its place suspect,
unless the place has answered another call since. Then a small question decides, which a working
place answers at once: a large object, a long listing and the fault of one table are no silence.

    the oldest call without an answer begins             0 s
    the place is suspect, and is asked                   4 to 5 s
    no answer: its condition, and the others are told    9 s at the latest
    this committer gives its shards up                   GIVE_UP_S, if another committer can work
    an answer to the question                            the condition ends
    the others count this committer as able again        `trust_s` later

`trust_s` doubles each time that shards were given up, and begins again with each silence: a place
that comes and goes does not move them each time. A call that is refused (permissions, an absent
object) has been answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from committer.errors import FrazilError, TransientError
from committer.ports.world import World
from committer.service.telemetry.health import Health
from committer.service.telemetry.log import log

STORAGE, INBOX, CATALOG = "storage", "inbox", "catalog"
LOOK_S = 1.0
SUSPECT_S = 4.0
ASK_S_MAX = 4.0
ASK_INTERVAL_S = 5.0
GIVE_UP_S = 15.0
TRUST_S_MIN = 15.0
TRUST_S_MAX = 240.0
# As long well, a committer is trusted as at its start.
WELL_S = 600.0

Question = Callable[[], Awaitable[object]]


@dataclass(slots=True, eq=False)
class PlaceCalls:
    """The calls of one place that are under way, and its last answer.

    `failed_s`: when the first call began that failed since. `location`: what was called last.
    """

    location: str = ""
    answered_s: float = float("-inf")
    failed_s: float | None = None
    _begun_s: dict[int, float] = field(default_factory=dict)
    _number: int = 0

    def begin(self, now_s: float, location: str = "") -> int:
        """Note that a call begins. Return its number."""
        self.location = location or self.location
        self._number += 1
        self._begun_s[self._number] = now_s
        return self._number

    def answered(self, now_s: float) -> None:
        """Note that the place has answered, whatever the answer was."""
        self.answered_s = now_s
        self.failed_s = None

    def end(self, number: int, error: BaseException | None, now_s: float) -> None:
        """Note the end of a call: a canceled one tells nothing."""
        begun_s = self._begun_s.pop(number)
        if isinstance(error, TransientError):
            self.failed_s = begun_s if self.failed_s is None else self.failed_s
        elif error is None or isinstance(error, FrazilError):
            self.answered(now_s)

    @property
    def silent_since_s(self) -> float | None:
        """Since when the place has been silent; None: no call lacks an answer."""
        oldest_s = next(iter(self._begun_s.values()), None)
        since = [one for one in (self.failed_s, oldest_s) if one is not None]
        return max(min(since), self.answered_s) if since else None


@dataclass(slots=True, eq=False)
class _Place:
    """`unanswered_since_s`: since when it has been silent, once the question has failed. `doubts`:
    reasons to ask it anew, of which so many are `settled` by a question that began later.
    """

    name: str
    calls: PlaceCalls = field(default_factory=PlaceCalls)
    question: Question | None = None
    unanswered_since_s: float | None = None
    doubts: int = 0
    settled: int = 0

    @property
    def is_doubted(self) -> bool:
        return self.settled < self.doubts


class PlaceWatch:
    """The watch of one process. Its places are named once, before it runs."""

    def __init__(self, world: World, health: Health) -> None:
        self._world = world
        self._health = health
        self._places: dict[str, _Place] = {}
        self._listeners: list[Callable[[], None]] = []
        self._trust_s = TRUST_S_MIN
        self._trusted_from_s = float("-inf")
        self._has_given_up = False

    def calls(self, name: str) -> PlaceCalls:
        """Return where the calls of a place are noted."""
        return self._places.setdefault(name, _Place(name)).calls

    def location(self, name: str) -> str:
        """Return the object of a place that was called last; empty before the first."""
        return self._places[name].calls.location

    def ask_by(self, name: str, question: Question) -> None:
        """Name the question that a working place answers at once. A place whose calls are not noted
        is not watched.
        """
        if name in self._places:
            self._places[name].question = question

    def on_change(self, listener: Callable[[], None]) -> None:
        """Have a listener called when `is_cut_off` may have changed."""
        self._listeners.append(listener)

    # --- What the sharing of tables asks ---------------------------------------------------------

    @property
    def silent(self) -> dict[str, float]:
        """For how many seconds each place has been silent whose question has failed."""
        now_s = self._world.monotonic_s()
        return {
            place.name: now_s - place.unanswered_since_s
            for place in self._places.values()
            if place.unanswered_since_s is not None
        }

    @property
    def is_cut_off(self) -> bool:
        """Whether a place is silent, or was so lately that no other committer should hand over."""
        return bool(self.silent) or self._world.monotonic_s() < self._trusted_from_s

    @property
    def must_give_up(self) -> bool:
        """Whether a place has been silent for so long that another committer should work, and
        nothing makes it likely that this has ended.
        """
        silent = self.silent
        return any(
            silent[place.name] >= GIVE_UP_S and not place.is_doubted
            for place in self._places.values()
            if place.name in silent
        )

    @property
    def change_due_s(self) -> float | None:
        """In how many seconds `must_give_up` or `is_cut_off` changes if nothing happens."""
        due = [GIVE_UP_S - silent_s for silent_s in self.silent.values() if silent_s < GIVE_UP_S]
        trusted_in_s = self._trusted_from_s - self._world.monotonic_s()
        return min([*due, *([trusted_in_s] if trusted_in_s > 0 else [])], default=None)

    def gave_up(self) -> None:
        """Note that shards were given up: after the end of this silence trust takes its time."""
        self._has_given_up = True

    def doubt_all(self) -> None:
        """Ask all places at the next look: another committer has lost one, or reaches it again."""
        for place in self._places.values():
            place.doubts += 1

    # --- The loop --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch all places until canceled."""
        async with asyncio.TaskGroup() as tasks:
            for place in self._places.values():
                if place.question is not None:
                    tasks.create_task(self._watch(place, place.question), name="place-watch")

    async def _watch(self, place: _Place, question: Question) -> None:
        while True:
            await self._world.sleep(LOOK_S)
            since_s = self._suspected_since_s(place)
            if since_s is None:
                continue
            error = await self._ask(place, question)
            if error is None:
                continue
            self._lost(place, since_s, error)
            while error is not None:
                await self._pause(place)
                was_doubted = place.is_doubted
                error = await self._ask(place, question)
                if was_doubted:
                    self._tell()
            self._answers_again(place, since_s)

    async def _pause(self, place: _Place) -> None:
        """Wait for the next question to a silent place, less long where there is news of it."""
        end_s = self._world.monotonic_s() + ASK_INTERVAL_S
        while not place.is_doubted and self._world.monotonic_s() < end_s:
            await self._world.sleep(LOOK_S)

    def _suspected_since_s(self, place: _Place) -> float | None:
        now_s = self._world.monotonic_s()
        since_s = place.calls.silent_since_s
        if since_s is not None and now_s - since_s >= SUSPECT_S:
            return since_s
        # Until it is trusted again it has no work that would notice a silence.
        is_untrusted = now_s < self._trusted_from_s
        is_due = is_untrusted and now_s - place.calls.answered_s >= ASK_INTERVAL_S
        return now_s if place.is_doubted or is_due else None

    async def _ask(self, place: _Place, question: Question) -> str | None:
        """Ask once. Return why there is no answer; None: there is one."""
        doubts = place.doubts
        try:
            async with asyncio.timeout(ASK_S_MAX):
                await question()
        except TimeoutError:
            return f"no answer within {ASK_S_MAX:g} s"
        except TransientError as error:
            return str(error)
        except FrazilError:
            pass  # an answer
        finally:
            place.settled = doubts
        place.calls.answered(self._world.monotonic_s())
        return None

    def _lost(self, place: _Place, since_s: float, error: str) -> None:
        place.unanswered_since_s = since_s
        last = place.calls.location
        what = f"`{last}`: " if last else ""
        text = f"{what}{error}"
        if self._health.degraded(f"{place.name} answers", text):
            log.warning(f"{place.name}.answers_fail", error=text)
        self._tell()

    def _answers_again(self, place: _Place, since_s: float) -> None:
        place.unanswered_since_s = None
        if self._health.healthy(f"{place.name} answers"):
            log.warning(f"{place.name}.answers_recovered")
        if not self.silent and (self._has_given_up or since_s < self._trusted_from_s):
            self._trust_later(since_s)
        self._tell()

    def _trust_later(self, since_s: float) -> None:
        """Begin the time of trust after a silence that began then: twice the last one, if shards
        were given up again; the same, if it was interrupted.
        """
        if self._has_given_up:
            was_well = since_s - self._trusted_from_s >= WELL_S
            self._trust_s = TRUST_S_MIN if was_well else min(2 * self._trust_s, TRUST_S_MAX)
        self._trusted_from_s = self._world.monotonic_s() + self._trust_s
        self._has_given_up = False

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()
