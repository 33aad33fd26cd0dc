"""Tokens for object stores: when they are renewed, and that an ended one is not sent."""

from __future__ import annotations

import pytest

from committer.errors import AccessError, StorageUnavailableError
from committer.storage.http.authorization import RenewedToken, StaticToken, Token
from committer.storage.http.http_client import HttpRequest
from tests.support.clock.worlds import ManualWorld

REQUEST = HttpRequest("GET", "https://storage.example/a")


def bearer_of(request: HttpRequest) -> str:
    return request.headers["Authorization"].removeprefix("Bearer ")


class Fetches:
    """Tokens that end in an hour, or an error."""

    def __init__(self, world: ManualWorld) -> None:
        self.count = 0
        self.fails: Exception | None = None
        self._world = world

    async def __call__(self) -> Token:
        self.count += 1
        if self.fails is not None:
            raise self.fails
        return Token(f"token-{self.count}", self._world.now_ms() + 3_600_000)


async def test_a_token_is_fetched_once_and_again_before_it_ends() -> None:
    world = ManualWorld()
    fetches = Fetches(world)
    renewed = RenewedToken(fetches, world)
    for _ in range(3):
        assert bearer_of(await renewed.sign(REQUEST)) == "token-1"
    world.advance(3_299)
    assert bearer_of(await renewed.sign(REQUEST)) == "token-1"
    world.advance(2)
    assert bearer_of(await renewed.sign(REQUEST)) == "token-2"
    refused = await renewed.sign(REQUEST)
    for _ in range(3):  # of many calls at one time that it was refused to
        assert renewed.forget(refused)
        assert bearer_of(await renewed.sign(REQUEST)) == "token-3"


async def test_a_token_is_used_to_its_end_while_no_other_can_be_had() -> None:
    world = ManualWorld()
    fetches = Fetches(world)
    renewed = RenewedToken(fetches, world)
    await renewed.sign(REQUEST)
    fetches.fails = StorageUnavailableError("no answer")
    world.advance(3_500)
    assert bearer_of(await renewed.sign(REQUEST)) == "token-1"
    world.advance(101)
    with pytest.raises(StorageUnavailableError, match="no answer"):
        await renewed.sign(REQUEST)


async def test_a_given_token_that_has_ended_is_not_sent() -> None:
    world = ManualWorld()
    given = StaticToken(Token("secret", world.now_ms() + 1_000), "gcs.oauth2.token", world)
    assert bearer_of(await given.sign(REQUEST)) == "secret"
    assert not given.forget(REQUEST)
    world.advance(1)
    with pytest.raises(AccessError, match=r"`gcs\.oauth2\.token` has expired"):
        await given.sign(REQUEST)
