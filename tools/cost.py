"""The cost of Frazil on S3 and DynamoDB: calls that tests count, times prices that are named.

`docs/reference/cost.md` is made of this. Other prices: change `PRICES`, then `make docs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass

from committer.settings.service_settings import CommitSettings, ServiceSettings

MILLION = 1_000_000
SECONDS_A_MONTH = 30 * 24 * 3_600


@dataclass(frozen=True, slots=True)
class Calls:
    """The number of calls of each kind. Fractions are shares of what is done once for many."""

    put: float = 0.0
    list: float = 0.0
    get: float = 0.0
    delete: float = 0.0
    """Calls for up to 1,000 objects each."""
    swap: float = 0.0

    def __add__(self, other: Calls) -> Calls:
        return Calls(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, factor: float) -> Calls:
        return Calls(*(factor * each for each in astuple(self)))


@dataclass(frozen=True, slots=True)
class Prices:
    """USD for a million. `delete`: S3 says that deletions are free, not whether those of many
    objects in one call are, so they are counted like a PUT.
    """

    where: str
    when: str
    put: float
    list: float
    get: float
    delete: float
    swap: float
    """One write request unit: the item of a table has less than 1 KB, and no index changes."""

    def of(self, calls: Calls) -> float:
        """Return USD for so many calls."""
        return (
            self.put * calls.put
            + self.list * calls.list
            + self.get * calls.get
            + self.delete * calls.delete
            + self.swap * calls.swap
        ) / MILLION


PRICES = Prices(
    where="us-east-1, S3 Standard, DynamoDB on demand, Standard table class",
    when="November 2025",
    put=5.00,
    list=5.00,
    get=0.40,
    delete=5.00,
    swap=0.625,
)

# tests/deploy/test_cost.py counts each of these.
REQUEST = Calls(put=1, list=1)
"""A micro-batch: its object in the inbox, and a look for earlier epochs in quarantine."""
COMMIT = Calls(put=4, delete=1, swap=1)
"""Manifest, manifest list, metadata, high-water mark; the requests leave the inbox; the pointer
moves.
"""
UPKEEP = Calls(put=0.1, list=0.06, get=2.5, delete=1.25)
"""Merging, expiry with its look into the inbox, metadata clean-up, spread over commits: at most."""

BATCHES = (1, 10, 100, 1_000)
INTERVALS_S = (1, 10, 60, 300)


def for_requests(count: float, *, batch: float) -> Calls:
    """Return the calls of so many requests, `batch` of them in each commit."""
    return REQUEST * count + (COMMIT + UPKEEP) * (count / batch)


def cost_page() -> str:
    """Return the page of costs."""
    return "\n".join((_INTRODUCTION, _calls(), _by_batch(), _by_interval(), _REST.format(_idle())))


_INTRODUCTION = """\
# Cost on AWS

Made from `tools/cost.py` by `make docs`. The calls are counted in tests; the prices are named, and
change.

Not in here: the data files, which cost the same without Frazil (for each a PUT and, since a name is
looked at before it is written, a GET); the storage itself; the machines and Redis; a KMS key's
calls. In one region with gateway endpoints, traffic costs nothing.
"""

_REST = """\
## Other calls

* **Nothing to do**: a committer lists the inbox every `service.reconcile_interval_s`, which is
  {} a month. Without a queue (`queue.url = "none"`) it lists every second.
* **A conflict** with another engine's commit reads the pointer and the metadata, and writes list
  and metadata again: less than a commit more.
* **Upkeep** asks DynamoDB where the table stands before each call that deletes: a fifth of a swap
  each time.
* **The look for quarantined epochs** is half of a request's cost. `on_quarantine=continue` saves
  it, and gives up that a producer stops at its own bad epoch; `wait=committed` saves it while all
  goes well.
* **The audit**: requests that alter or delete write one object more, a PUT for all of them that
  end within 0.1 s; a stream of changes that commits alone pays five PUT a commit. A plain append
  writes none. A command that changes something writes two.
* **A thousand files** in one request cost what one file does.
* **A request above 32 MiB** is written in parts of 16 MiB: a PUT each, and two more.

How to make it less: [how-to/tune.md](../how-to/tune.md).
"""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---" for _ in lines[0]])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _calls() -> str:
    names = ("PUT", "LIST", "GET", "DELETE of up to 1,000", "swap (DynamoDB write)")
    rows = (
        ("a request, made durable", REQUEST),
        ("a commit, of whatever number of requests", COMMIT),
        ("upkeep, spread over commits, at most", UPKEEP),
    )
    prices = (PRICES.put, PRICES.list, PRICES.get, PRICES.delete, PRICES.swap)
    table = _table(
        ("", *names),
        [
            *((what, *(f"{each:g}" for each in astuple(calls))) for what, calls in rows),
            ("**USD for a million**", *(f"{price:.3f}" for price in prices)),
        ],
    )
    return (
        "## The calls\n\nA commit reads nothing while no other engine commits, and costs the same"
        f" for one file or a thousand.\n\n{table}\nPrices: {PRICES.where}, {PRICES.when}.\n"
        "A deletion of many objects is counted like a PUT, to be safe.\n"
    )


def _by_batch() -> str:
    rows = (
        (
            f"{batch:,}",
            f"{MILLION // batch:,}",
            f"{PRICES.of(REQUEST * MILLION):.2f}",
            f"{PRICES.of((COMMIT + UPKEEP) * (MILLION / batch)):.2f}",
            f"**{PRICES.of(for_requests(MILLION, batch=batch)):.2f}**",
        )
        for batch in BATCHES
    )
    table = _table(
        ("requests in a commit", "commits", "requests, USD", "commits and upkeep, USD", "sum, USD"),
        rows,
    )
    return (
        "## A million requests\n\nAs many requests share a commit as come within one interval."
        f"\n\n{table}"
    )


def _by_interval() -> str:
    rows = []
    for interval_s in INTERVALS_S:
        commits = SECONDS_A_MONTH / interval_s
        rows.append(
            (
                f"{interval_s:,} s",
                f"{commits:,.0f}",
                f"{PRICES.of((COMMIT + UPKEEP) * commits):.2f}",
                f"{PRICES.of(REQUEST * commits):.2f}",
            )
        )
    table = _table(
        (
            "interval",
            "commits, or requests of one writer, a month",
            "commits of a table that is never quiet, USD",
            "requests of one writer, USD",
        ),
        rows,
    )
    default_s = CommitSettings().min_interval_ms / 1_000
    return (
        "## A month\n\nA table pays for the commits that its interval allows, a writer for its"
        f" micro-batches.\nThe least interval is {default_s:g} s, unless set otherwise.\n\n{table}"
    )


def _idle() -> str:
    listings = SECONDS_A_MONTH / ServiceSettings().reconcile_interval_s
    return f"{PRICES.of(Calls(list=listings)):.2f} USD"
