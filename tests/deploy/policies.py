"""IAM policies as data: what they allow, as far as ours use the language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

AWS = Path(__file__).parent.parent.parent / "deploy/aws"
BUCKET = "arn:aws:s3:::YOUR_BUCKET"
TABLE = "arn:aws:dynamodb:YOUR_REGION:YOUR_ACCOUNT:table/iceberg"

# Condition keys of a call to S3: its own condition, or that it is a part of an upload.
CREATES = {"s3:if-none-match": "*", "s3:ObjectCreationOperation": "true"}
REPLACES = {"s3:if-match": "an etag", "s3:ObjectCreationOperation": "true"}
OVERWRITES = {"s3:ObjectCreationOperation": "true"}
PART = {"s3:ObjectCreationOperation": "false"}


@dataclass(frozen=True, slots=True)
class Policy:
    """The statements of one file. All of them allow."""

    name: str
    statements: tuple[Mapping[str, Any], ...]

    @property
    def actions(self) -> set[str]:
        return {action for one in self.statements for action in one["Action"]}

    def allows(self, action: str, resource: str, context: Mapping[str, str] | None = None) -> bool:
        return any(
            action in one["Action"]
            and any(fnmatchcase(resource, pattern) for pattern in one["Resource"])
            and _holds(one.get("Condition", {}), context or {})
            for one in self.statements
        )


def load_policy(name: str) -> Policy:
    """Load `deploy/aws/<name>.json`."""
    document = json.loads((AWS / f"{name}.json").read_text())
    assert document["Version"] == "2012-10-17"
    assert all(one["Effect"] == "Allow" for one in document["Statement"])
    return Policy(name, tuple(document["Statement"]))


def _holds(conditions: Mapping[str, Mapping[str, str]], context: Mapping[str, str]) -> bool:
    for operator, wanted in conditions.items():
        for key, value in wanted.items():
            match operator:
                case "Null":
                    holds = (key not in context) == (value == "true")
                case "Bool":
                    holds = context.get(key) == value
                case _:
                    raise AssertionError(f"the test does not know the condition {operator}")
            if not holds:
                return False
    return True
