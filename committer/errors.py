"""Every exception of Frazil. An error class is an instruction to the caller.

A new class needs a new action; otherwise it is a message.

    FrazilError
    ├─ TransientError            nothing changed: wait and try again
    │   ├─ StorageUnavailableError
    │   ├─ CatalogUnavailableError
    │   ├─ QueueUnavailableError
    │   │   └─ QueueKeyTakenError name the key and the remedy; what does not need it goes on
    │   └─ EpochGapError         a lower epoch has to land first: hold this one, blame no server
    ├─ AccessError               permission or credentials: pause, keep everything, page a human
    ├─ NotFoundError             the named thing is not there: the caller decides what that means
    │   ├─ NoSuchTableError
    │   └─ NoSuchNamespaceError
    ├─ ObjectTooLargeError       more than its caller reads: stop what needs it, page a human
    ├─ UndeletedError            these objects remain, the others are deleted: repeat it for these
    ├─ AlreadyExistsError        the name is taken: compare, then decide
    │   └─ TableAlreadyExistsError
    ├─ NamespaceNotEmptyError    it holds tables or namespaces: drop or move these first
    ├─ InvalidRequestError       this commit request can never commit: quarantine it
    ├─ InvalidMetadataError      stored metadata breaks the spec: stop this table, page a human
    ├─ TableFrozenError          a table went backwards: no commit, no verdict, page a human
    ├─ InvalidFilterError        a filter does not fit the table: report it to its author
    ├─ UnsupportedError          valid Iceberg, not ours yet: quarantine, name the feature
    ├─ PublishError              a write cannot be published: fail the micro-batch, tell the user
    ├─ SettingsError             refuse to start, name the setting
    └─ InvariantError            our bug: crash this task, keep the evidence

A message says what happened, to which table or file, and what was expected. It never holds a secret
or a column bound (bounds are data).
"""

from __future__ import annotations

from collections.abc import Mapping

_MESSAGE_MAX = 1000


class FrazilError(Exception):
    """The root of every error of Frazil."""


def reason_of(error: Exception) -> str:
    """Return one text for people: our messages stand for themselves,
    any other error needs its class."""
    return str(error) if isinstance(error, FrazilError) else f"{type(error).__name__}: {error}"


def _readable(message: str) -> str:
    """Return one line of bounded length: others wrote what it quotes, for a terminal perhaps."""
    if len(message) > _MESSAGE_MAX:
        message = f"{message[:_MESSAGE_MAX]}…"
    if message.isprintable():
        return message
    return "".join(part if part.isprintable() else ascii(part)[1:-1] for part in message)


class TransientError(FrazilError):
    """Nothing was applied; the same call may succeed later."""


class StorageUnavailableError(TransientError):
    """The storage did not answer, or asked us to slow down."""


class CatalogUnavailableError(TransientError):
    """The catalog did not answer and surely applied nothing."""


class QueueUnavailableError(TransientError):
    """The queue did not answer. The inbox still holds what was published."""


class QueueKeyTakenError(QueueUnavailableError):
    """A key of the queue holds something else. The message names it, and the remedy."""


class EpochGapError(TransientError):
    """A request of an ordered producer waits for a lower epoch."""


class AccessError(FrazilError):
    """Credentials or permissions are missing or wrong."""


class NotFoundError(FrazilError):
    """The named object, table or namespace does not exist."""


class NoSuchTableError(NotFoundError):
    """The catalog has no such table."""


class NoSuchNamespaceError(NotFoundError):
    """The catalog has no such namespace."""


class ObjectTooLargeError(FrazilError):
    """An object has more bytes than its reader takes. Nothing of it was read, unless only its
    inflated form `inflates` to more. `advice`: what to do.
    """

    def __init__(
        self,
        location: str,
        size_bytes: int,
        size_bytes_max: int,
        *,
        inflates: bool = False,
        advice: str = "",
    ) -> None:
        has = f"`{location}` has {size_bytes} bytes, and"
        is_read = f"{size_bytes_max} {'that are' if inflates else 'are'} read"
        too_many = f"inflates to more than the {is_read}" if inflates else f"at most {is_read}"
        super().__init__(_readable(f"{has} {too_many}" + (f": {advice}" if advice else "")))
        self.size_bytes = size_bytes


class UndeletedError(FrazilError):
    """Some objects could not be deleted. All others of the same call are deleted.

    `failures`: why each of them remains, by its location or key; at least one.
    """

    def __init__(self, failures: Mapping[str, FrazilError]) -> None:
        first, *others = failures.values()
        rest = f" (and {len(others)} more objects could not be deleted)" if others else ""
        super().__init__(f"{first}{rest}")
        self.failures = dict(failures)


class AlreadyExistsError(FrazilError):
    """A create-only call met an existing object."""


class TableAlreadyExistsError(AlreadyExistsError):
    """The catalog already has a table of this name."""


class NamespaceNotEmptyError(FrazilError):
    """A namespace that holds tables, views or namespaces cannot be dropped."""


class InvalidRequestError(FrazilError):
    """A commit request that can never commit. `reason` is a code of `committer.reason`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(_readable(message))
        self.reason = reason


class InvalidMetadataError(FrazilError):
    """Stored bytes are not what the Iceberg specification says."""

    def __init__(self, message: str) -> None:
        super().__init__(_readable(message))


class TableFrozenError(FrazilError):
    """A table does not hold what is known to have been committed to it."""

    def __init__(self, message: str) -> None:
        super().__init__(_readable(message))


class InvalidFilterError(FrazilError):
    """A filter cannot be read, or asks what the table's schema cannot answer."""

    def __init__(self, message: str) -> None:
        super().__init__(_readable(message))


class UnsupportedError(FrazilError):
    """Valid by the specification, but not implemented here."""

    def __init__(self, message: str) -> None:
        super().__init__(_readable(message))


class PublishError(FrazilError):
    """A request was refused before it became durable, or an earlier one is in quarantine."""


class SettingsError(FrazilError):
    """A setting is wrong or unsafe. The message names it."""


class InvariantError(FrazilError):
    """A condition that this code guarantees does not hold."""
