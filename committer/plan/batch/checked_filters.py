"""The filters of a request, read and proven to fit the table's current schema."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from committer.errors import InvalidFilterError, InvalidMetadataError, InvalidRequestError
from committer.iceberg.expressions.binding import bind
from committer.iceberg.expressions.expression import Expression
from committer.iceberg.expressions.expression_json import parse_expression
from committer.iceberg.schema.schema import Schema
from committer.reason import Reason
from committer.request.needs import Filter, Needs

# Of JSON values in one filter: a set of so many literals is pickled and kept.
FILTER_VALUES_MAX = 20_000


@dataclass(frozen=True, slots=True)
class CheckedFilters:
    """The row filter and the conflict filter of a request, unbound."""

    row: Expression | None = None
    conflict: Expression | None = None


NO_FILTERS = CheckedFilters()


def check_filters(needs: Needs, schema: Schema) -> CheckedFilters:
    """Read the filters of a request. Errors: `InvalidRequestError` naming filter and column."""
    if needs.row_filter is None and needs.conflict_filter is None:
        return NO_FILTERS
    return CheckedFilters(
        _checked("row-filter", needs.row_filter, schema, needs.case_sensitive),
        _checked("conflict-filter", needs.conflict_filter, schema, needs.case_sensitive),
    )


def _checked(
    name: str, document: Filter | None, schema: Schema, case_sensitive: bool
) -> Expression | None:
    if document is None:
        return None
    if _has_more_values(document, FILTER_VALUES_MAX):
        raise InvalidRequestError(
            Reason.REQUEST_TOO_LARGE,
            f"`{name}` has more than {FILTER_VALUES_MAX} values: take a wider filter",
        )
    try:
        expression = parse_expression(document, where=f"`{name}`")
        bind(expression, schema, case_sensitive=case_sensitive)
    except InvalidMetadataError as error:
        raise InvalidRequestError(Reason.REQUEST_MALFORMED, str(error)) from None
    except InvalidFilterError as error:
        raise InvalidRequestError(Reason.FILTER_UNBOUND, f"`{name}`: {error}") from None
    return expression


def _has_more_values(document: object, limit: int) -> bool:
    waiting: list[object] = [document]
    seen = 0
    while waiting:
        inner = waiting.pop()
        seen += 1
        if seen + len(waiting) > limit:
            return True
        waiting.extend(_parts(inner))
    return False


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
