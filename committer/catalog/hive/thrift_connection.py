"""One connection to a metastore: calls, their answers, and what went wrong with one.

`pool` has connections for the catalog's threads. The calls and their field ids are those of Hive's
interface definition, `hive_metastore.thrift`; a release only ever adds to it.
"""

from __future__ import annotations

import select
import socket
from types import MappingProxyType

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from committer.catalog.hive.thrift_values import Struct, get_text, read_struct, text, write_struct

_META, _ABSENT = "MetaException", "NoSuchObjectException"
_EXISTS, _INVALID = "AlreadyExistsException", "InvalidObjectException"
_OPERATION, _LOCK = "InvalidOperationException", "NoSuchLockException"
# The errors that a call declares, by their field in its answer.
_CALLS = MappingProxyType(
    {
        "alter_database": {1: _META, 2: _ABSENT},
        "alter_table_with_environment_context": {1: _OPERATION, 2: _META},
        "check_lock": {1: "NoSuchTxnException", 2: "TxnAbortedException", 3: _LOCK},
        "create_database": {1: _EXISTS, 2: _INVALID, 3: _META},
        "create_table": {1: _EXISTS, 2: _INVALID, 3: _META, 4: _ABSENT},
        "drop_database": {1: _ABSENT, 2: _OPERATION, 3: _META},
        "drop_table": {1: _ABSENT, 2: _META},
        "get_all_databases": {1: _META},
        "get_database": {1: _ABSENT, 2: _META},
        "get_table_names_by_filter": {1: _META, 2: _OPERATION, 3: "UnknownDBException"},
        "get_table_req": {1: _META, 2: _ABSENT},
        "lock": {1: "NoSuchTxnException", 2: "TxnAbortedException"},
        "set_ugi": {1: _META},
        "show_locks": {},
        "unlock": {1: _LOCK, 2: "TxnOpenException"},
    }
)
_UNKNOWN_METHOD = "UnknownMethod"
_STRING_BYTES_MAX = 64 << 20
_ITEMS_MAX = 1 << 20


class MetastoreError(Exception):
    """The metastore answered a call with an error. `kind`: its class in Hive's interface, or
    `UnknownMethod` for a call that this release does not have.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message

    @property
    def is_absent(self) -> bool:
        return self.kind in (_ABSENT, "UnknownDBException")

    @property
    def is_taken(self) -> bool:
        return self.kind == _EXISTS

    @property
    def is_invalid(self) -> bool:
        return self.kind == _INVALID

    @property
    def is_refused(self) -> bool:
        """Whether the metastore judged the call before it began to apply it."""
        return self.kind in (_OPERATION, _UNKNOWN_METHOD)


class LostAnswerError(Exception):
    """A call was sent, and no readable answer came: it may have been applied, or may be yet."""


class Connection:
    """A connection that one thread at a time uses. After any error it must be closed: a metastore
    may answer the next call with the error of the one before.
    """

    def __init__(
        self, host: str, port: int, *, connect_timeout_s: float, read_timeout_s: float
    ) -> None:
        """Connect. Errors: `OSError`."""
        # Thrift's own way to connect logs each host that does not answer.
        self._socket = socket.create_connection((host, port), timeout=connect_timeout_s)
        self._socket.settimeout(read_timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = TSocket()
        transport.setHandle(self._socket)
        self._transport = TBufferedTransport(transport, rbuf_size=1 << 16)
        self._protocol = TBinaryProtocol(
            self._transport,
            strictRead=True,
            string_length_limit=_STRING_BYTES_MAX,
            container_length_limit=_ITEMS_MAX,
        )
        self._sent = 0

    def is_idle(self) -> bool:
        """Return whether the server neither closed the connection nor said anything unasked."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLHUP)
        return not poll.poll(0)

    def call(self, name: str, arguments: Struct) -> Struct:
        """Send a call once, and return its result struct.

        Errors: `MetastoreError`, `LostAnswerError`.
        """
        declared = _CALLS[name]
        try:
            result = self._exchange(name, arguments)
        except MetastoreError:
            raise
        except Exception as error:  # whatever it is: the call may have been applied
            raise LostAnswerError(f"{name}: {type(error).__name__}: {error}") from error
        for number, kind in declared.items():
            if number in result:
                raise MetastoreError(kind, get_text(result[number].value, 1))
        return result

    def _exchange(self, name: str, arguments: Struct) -> Struct:
        self._sent += 1
        self._protocol.writeMessageBegin(name, TMessageType.CALL, self._sent)
        write_struct(self._protocol, arguments)
        self._protocol.writeMessageEnd()
        self._transport.flush()
        answered, kind, number = self._protocol.readMessageBegin()
        result = read_struct(self._protocol)
        self._protocol.readMessageEnd()
        if (answered, number) != (name, self._sent):
            raise ValueError(f"the answer is that to call {number}, `{answered}`")
        if kind == TMessageType.EXCEPTION:
            unknown = result.get(2, text("")).value == TApplicationException.UNKNOWN_METHOD
            raise MetastoreError(_UNKNOWN_METHOD if unknown else "Exception", get_text(result, 1))
        return result

    def close(self) -> None:
        self._transport.close()
