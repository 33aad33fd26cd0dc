"""Which calls of AWS a module makes, read from its code: from each function to all that it uses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from botocore import xform_name
from botocore.session import Session

ROOT = Path(__file__).parent.parent.parent

# IAM names permissions after calls, but not all of them.
_PERMISSIONS = {
    "s3": {
        "GetObject": {"s3:GetObject"},
        "HeadObject": {"s3:GetObject"},
        "ListObjectsV2": {"s3:ListBucket"},
        "PutObject": {"s3:PutObject"},
        "CreateMultipartUpload": {"s3:PutObject"},
        "UploadPart": {"s3:PutObject"},
        "CompleteMultipartUpload": {"s3:PutObject"},
        "AbortMultipartUpload": {"s3:AbortMultipartUpload"},
        "DeleteObjects": {"s3:DeleteObject"},
    },
    "glue": {},
    "s3tables": {},
    # Our transaction deletes one item and puts another.
    "dynamodb": {"TransactWriteItems": {"dynamodb:PutItem", "dynamodb:DeleteItem"}},
}


_API = "self._api."


class ClientCalls:
    """The code of the files that match the patterns, as far as it leads to calls of one service. A
    base class comes before its adapter, whose methods override its own."""

    def __init__(self, service: str, *patterns: str) -> None:
        self._service = service
        self._operations = operations(service)
        self._bodies: dict[str, ast.AST] = {}
        for path in (path for pattern in patterns for path in sorted(ROOT.glob(pattern))):
            self._add("", ast.parse(path.read_text()).body)

    def _add(self, prefix: str, body: Iterable[ast.stmt]) -> None:
        """Add functions by name, methods as `self.name`: no two classes of an adapter share one.
        Those of a store's protocol, `…Api`, are called as `self._api.name`.
        """
        for node in body:
            match node:
                case ast.ClassDef():
                    self._add(_API if node.name.endswith("Api") else "self.", node.body)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._bodies[prefix + node.name] = node

    def permissions(self, methods: Iterable[str]) -> set[str]:
        """Return the actions that IAM must allow for these methods, and for those that they use."""
        special = _PERMISSIONS[self._service]
        return {
            permission
            for call in self.calls(methods)
            for permission in special.get(call, {f"{self._service}:{call}"})
        }

    def calls(self, methods: Iterable[str]) -> set[str]:
        """Return the calls' names in the service's own spelling."""
        waiting, seen, found = [f"self.{name}" for name in methods], set[str](), set[str]()
        assert [name for name in waiting if name not in self._bodies] == []
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for used in _mentioned(self._bodies[name]):
                owner, _, last = used.rpartition(".")
                if owner.endswith("client") and last in self._operations:
                    found.add(self._operations[last])
                else:
                    own = used.replace("self.", _API, 1) if name.startswith(_API) else used
                    waiting += [own] if own in self._bodies else []
        return found


def _mentioned(body: ast.AST) -> Iterator[str]:
    """Yield every name and dotted name in the body; a paginator's call as if it was made itself."""
    for node in ast.walk(body):
        match node:
            case ast.Attribute() | ast.Name():
                yield ast.unparse(node)
            case ast.Call(ast.Attribute(client, "get_paginator"), [ast.Constant(str(call))]):
                yield f"{ast.unparse(client)}.{call}"


@cache
def operations(service: str) -> dict[str, str]:
    """Return the client's methods, with the service's names for them."""
    model = Session().get_service_model(service)
    return {xform_name(name): name for name in model.operation_names}
