"""The way of a call: to its server, an effect there at one moment, and the answer back.

A call on its way when the caller gives up, or ends, may still arrive. A lost answer is an error for
the caller (of a swap: `Unknown`) once its time is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from committer.errors import AccessError, FrazilError
from committer.request.table_identifier import TableIdentifier
from tests.simulation.faults import PROCESS_FAULTS, Call, Fault, delays_s
from tests.simulation.process import Life

T = TypeVar("T")

TIMEOUT_S = 4.0
SLOW_S = 10.0  # longer than a lease of `base_settings`
LATE_S_MAX = 20.0
RESENT_S_MAX = 3.0
# The way there, and the way back: what most calls of a port take.
_LATENCY_S = {"storage": 0.010, "catalog": 0.004, "queue": 0.001, "leases": 0.001}
_SERVERS = {"storage": "storage", "catalog": "catalog", "queue": "queue", "leases": "queue"}


@dataclass(slots=True)
class Effect(Generic[T]):
    """The effect of a call at its server. Not frozen, as that takes as long as half the call.

    `method` is `port.name`. `apply` waits for nothing, unless it `blocks`. `partly` does it for
    some of several items. `lost`: the answer to a call whose answer is lost (raises, or a value).
    `resent`: the answer to a call that took effect twice, made of what came of the second time.
    `tables`: those that it names, each of which may be away alone.
    """

    port: str
    method: str
    apply: Callable[[], Coroutine[Any, Any, T]]
    lost: Callable[[str], T]
    away: Callable[[str], FrazilError]
    detail: str = ""
    partly: Callable[[], Coroutine[Any, Any, object]] | None = None
    resent: Callable[[T], T] = lambda answer: answer
    refused: Callable[[], T] | None = None
    unseen: Callable[[T], None] = lambda answer: None
    blocks: bool = False
    tables: Sequence[TableIdentifier] = ()


async def send(life: Life, effect: Effect[T]) -> T:
    """Make a call. Errors: those of the port; `CancelledError` where the process has ended."""
    if life.has_ended:
        raise asyncio.CancelledError
    sent = Sent(life, effect)
    life.awaited[sent.answer] = None
    try:
        return await sent.answer
    finally:
        life.awaited.pop(sent.answer, None)


class Sent(Generic[T]):
    """A call under way."""

    __slots__ = (
        "_back",
        "_back_s",
        "_effect",
        "_fault",
        "_life",
        "_number",
        "_process",
        "_stage",
        "_there",
        "answer",
    )

    def __init__(self, life: Life, effect: Effect[T]) -> None:
        process = life.process
        self._life = life
        self._effect = effect
        self._stage = stage = process.stage
        self.answer: asyncio.Future[T] = stage.loop.create_future()
        method, self._process = effect.method, process.name
        self._number = number = process.calls[method]
        process.calls[method] = number + 1
        chance, which, there, back = delays_s(stage.seed, process.name, method, number)
        self._there, self._back = there, back
        self._fault = stage.faults.befalls(process.name, method, number, chance, which)
        port_s = _LATENCY_S[effect.port] * stage.slowness
        self._back_s = port_s * _stretched(back)
        stage.later(port_s * _stretched(there), self._arrive)

    # --- At the server ---

    def _arrive(self) -> None:
        if self._life.has_ended:
            call = Call(self._process, self._effect.method, self._number)
            self._stage.faults.orphaned.add(call)
            if self._back < 0.5:
                return  # it had not left
        outages = self._stage.outages
        if outages and self._is_away(outages):
            self._fail(self._effect.away("the server is away"), "away")
            return
        fault = self._fault
        if fault is None or (fault in PROCESS_FAULTS and self._life.has_ended):
            self._answer()
            return
        self._stage.faults.count(Call(self._process, self._effect.method, self._number), fault)
        self._befall(fault)

    def _is_away(self, outages: Collection[str]) -> bool:
        names = (_SERVERS[self._effect.port], *map(str, self._effect.tables))
        return any(name in outages for name in names)

    def _befall(self, fault: Fault) -> None:
        stage, effect = self._stage, self._effect
        if fault in PROCESS_FAULTS and fault is not Fault.CRASH_AFTER:
            stage.trace.add(self._process, effect.method, f"{effect.detail} [{fault.value}]")
            self._life.process.befall(fault, self._back)
            if fault is not Fault.CRASH_BEFORE:
                self._answer()
            return
        match fault:
            case Fault.ERROR_BEFORE:
                self._fail(effect.away("refused by the simulation"), fault.value)
            case Fault.DENIED:
                self._fail(AccessError("denied by the simulation"), fault.value)
            case Fault.REJECTED:
                assert effect.refused is not None
                self._note(fault.value)
                self._tell(effect.refused)
            case Fault.REQUEST_LOST:
                self._note(fault.value)
                self._lose(TIMEOUT_S)
            case Fault.PARTIAL:
                assert effect.partly is not None
                self._note(fault.value)
                _outcome(effect.partly)
                self._lose(0.0)
            case Fault.ERROR_AFTER | Fault.SILENCE_AFTER:
                self._apply(fault.value, unseen=True)
                self._lose(TIMEOUT_S if fault is Fault.SILENCE_AFTER else 0.0)
            case Fault.LATE:
                self._note("sent, to take effect late")
                self._lose(TIMEOUT_S)
                self._once_more(TIMEOUT_S * 0.5 + LATE_S_MAX * self._there**2, fault.value)
            case Fault.TWICE:
                self._apply(fault.value)
                stage.late += 1
                stage.later(RESENT_S_MAX * self._there, self._arrive_again)
            case Fault.SLOW:
                stage.late += 1
                stage.later(SLOW_S * (0.5 + self._there), self._arrive_slowly)
            case Fault.HELD:
                stage.late += 1
                self._life.process.pause(self._back)
                # In the process's own context, so not before it goes on.
                context = self._life.context()
                stage.loop.call_soon(stage.later, 0.0, self._arrive_slowly, context=context)
            case Fault.STALE_LIST:
                answer = self._apply(fault.value)
                stage.later(SLOW_S * (0.5 + self._there), self._tell, answer)
            case Fault.CRASH_AFTER:
                self._apply(fault.value, unseen=True)
                self._life.process.befall(fault, self._back)
            case _:
                raise AssertionError(f"no code carries out {fault}")

    def _arrive_slowly(self) -> None:
        self._stage.late -= 1
        self._answer()

    def _arrive_again(self) -> None:
        self._stage.late -= 1
        again = self._apply("again")
        self._tell(lambda: self._effect.resent(again()))

    def _once_more(self, delay_s: float, how: str) -> None:
        self._stage.late += 1

        def apply() -> None:
            self._stage.late -= 1
            self._apply(how, unseen=True)

        self._stage.later(delay_s, apply)

    def _answer(self) -> None:
        if self._effect.blocks:
            self._wait()
        else:
            self._stage.later(self._back_s, self._tell, self._apply())

    def _apply(self, how: str = "", *, unseen: bool = False) -> Callable[[], T]:
        """Take effect; return a function that returns the answer or raises the error."""
        if self._effect.blocks:
            return self._take_and_lose()
        answer = _outcome(self._effect.apply)
        self._note(how, answer)
        if unseen:
            _unsee(self._effect, answer)
        return answer

    # --- Calls that wait at the server ---

    def _wait(self) -> None:
        task = self._stage.loop.create_task(self._effect.apply(), context=self._stage.context)
        task.add_done_callback(self._waited, context=self._stage.context)
        self.answer.add_done_callback(lambda _: task.cancel(), context=self._stage.context)

    def _waited(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            return
        answer: Callable[[], T] = task.result
        self._note("", answer)
        self._stage.later(self._back_s, self._tell, answer)

    def _take_and_lose(self) -> Callable[[], T]:
        """Take as the server does, but lose the answer, with all deliveries in it."""
        task = self._stage.loop.create_task(self._effect.apply(), context=self._stage.context)

        def taken(done: asyncio.Task[T]) -> None:
            if not done.cancelled():
                self._note("unseen", done.result)
                _unsee(self._effect, done.result)

        task.add_done_callback(taken, context=self._stage.context)
        return lambda: self._effect.lost("lost by the simulation")

    # --- The way back ---

    def _lose(self, delay_s: float) -> None:
        self._stage.later(
            delay_s + self._back_s, self._tell, lambda: self._effect.lost("no answer")
        )

    def _fail(self, error: FrazilError, how: str) -> None:
        self._note(how)

        def fail() -> T:
            raise error

        self._stage.later(self._back_s, self._tell, fail)

    def _tell(self, answer: Callable[[], T]) -> None:
        if self.answer.done():
            _unsee(self._effect, answer)
            return
        try:
            self.answer.set_result(answer())
        except Exception as error:  # noqa: BLE001  # the caller's to handle
            self.answer.set_exception(error)

    def _note(self, how: str, answer: Callable[[], T] | None = None) -> None:
        effect, outcome = self._effect, ""
        if answer is not None:
            try:
                outcome = _shown(answer())
            except Exception as error:  # noqa: BLE001  # told to the caller
                outcome = f"! {type(error).__name__}"
        fault = f" [{how}]" if how else ""
        self._stage.trace.add(self._process, effect.method, f"{effect.detail}{outcome}{fault}")


def _outcome(apply: Callable[[], Coroutine[Any, Any, T]]) -> Callable[[], T]:
    """Run what waits for nothing; return what tells its result or its error, again and again."""
    work = apply()
    try:
        work.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return lambda: value
    except Exception as error:  # noqa: BLE001  # told to the caller
        told = error

        def fail() -> T:
            raise told

        return fail
    work.close()
    raise AssertionError("a server in memory waits for nothing")


def _unsee(effect: Effect[T], answer: Callable[[], T]) -> None:
    try:
        value = answer()
    except Exception:  # noqa: BLE001  # there was nothing to see
        return
    effect.unseen(value)


def _stretched(chance: float) -> float:
    """Stretch a delay: most calls take about as long as others, one in thirty ten times as long."""
    return 0.3 + 1.4 * chance + (10.0 if chance > 0.97 else 0.0)


def _shown(value: object) -> str:
    """Format an answer for a line of the trace, as far as it says something there."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return f" → {len(value)}"
    if isinstance(value, bytes):
        return f" → {len(value)} bytes"
    if isinstance(value, str):
        return f" → {value[-24:]}"
    return f" → {type(value).__name__}"
