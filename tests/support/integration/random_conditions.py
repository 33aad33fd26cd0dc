"""Random conditions of Spark SQL, of every kind of expression that has a boolean.

None of them fails for any row, also by Spark's ANSI rules: casts that may fail are `try_cast`, and
nothing overflows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping

# The columns that conditions name, as Spark declares them.
COLUMNS: Mapping[str, str] = {
    "id": "int",
    "big": "bigint",
    "text": "string",
    "day": "date",
    "at": "timestamp",
    "clock": "timestamp_ntz",
    "price": "decimal(9,2)",
    "ratio": "double",
    "flag": "boolean",
    "place": "struct<x: int>",
}
_VALUES: Mapping[str, tuple[str, ...]] = {
    "number": (
        *("id", "id", "big", "place.x", "-1", "0", "5", "7", "1099511627776L", "id + 1", "id % 3"),
        *("abs(id)", "length(text)", "coalesce(id, big)", "greatest(id, big, 3)", "nullif(id, 5)"),
        *("nvl2(text, 1, 2)", "if(flag, id, 7)", "CASE WHEN flag THEN id WHEN id = 5 THEN 3 END"),
        *("year(day)", "unix_date(day)", "instr(text, 'a')", "size(array(id, big))"),
        *("try_cast(text AS int)", "try_add(id, big)", "array(id, 5)[0]", "cast(id AS bigint)"),
        *("aggregate(array(id, 5), 0L, (sum, x) -> sum + coalesce(x, 0))", "bit_count(id)"),
    ),
    "text": (
        *("text", "text", "text", "'a'", "'ab'", "''", "'5'", "upper(text)", "lower(text)"),
        *("substring(text, 1, 1)", "concat(text, 'b')", "text || id", "cast(id AS string)"),
        *("coalesce(text, 'x')", "if(flag, text, 'a')", "replace(text, 'a', 'b')", "lpad(text, 3)"),
        *(
            "regexp_replace(text, 'a', 'b')",
            "translate(text, 'ab', 'xy')",
            "date_format(day, 'yyyy')",
        ),
        *("CASE id WHEN 5 THEN 'a' WHEN 7 THEN text ELSE 'x' END", "nullif(text, 'a')", "text"),
    ),
    "day": (
        *("day", "day", "day", "date'2024-01-02'", "'2024-01-01'", "date_add(day, 1)"),
        *("last_day(day)", "make_date(2024, 1, 2)", "cast(at AS date)", "trunc(day, 'month')"),
        *("least(day, date'2024-01-02')", "coalesce(day, date'2024-01-01')"),
    ),
    "at": (
        *("at", "at", "at", "timestamp'2024-03-01 10:00:00'", "'2024-03-01 10:00:00.000001'"),
        *("at + INTERVAL 1 HOUR", "date_trunc('day', at)", "cast(day AS timestamp)"),
        *("coalesce(at, timestamp'2024-03-01')", "timestamp'2024-10-27 02:30:00'"),
    ),
    "clock": (
        *("clock", "clock", "timestamp_ntz'2024-03-01 09:00:00'", "clock - INTERVAL 1 DAY"),
        *("coalesce(clock, timestamp_ntz'2025-01-01')", "cast(day AS timestamp_ntz)"),
    ),
    "price": (
        *("price", "price", "price", "1.5", "-2", "1.505", "price * 2", "round(price, 1)"),
        *("coalesce(price, 0.00)", "cast(id AS decimal(9,2))", "abs(price)"),
    ),
    "ratio": (
        *(
            "ratio",
            "ratio",
            "ratio",
            "0.5D",
            "0.0D",
            "-0.0D",
            "double('NaN')",
            "-ratio",
            "ratio * 2",
        ),
        *("double('Infinity')", "abs(ratio)", "nanvl(ratio, 0.5D)", "cast(price AS double)"),
        *("coalesce(ratio, 1.0D)", "if(isnan(ratio), 1.0D, ratio)", "cast(id AS double)"),
    ),
}
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_WHOLE = (
    *("flag", "flag", "true", "false", "cast(NULL AS boolean)", "cast(id AS boolean)"),
    *("cast(big AS boolean)", "cast(ratio AS boolean)", "try_cast(text AS boolean)"),
    *("isnan(ratio)", "isnan(-ratio)", "flag IS TRUE", "flag IS NOT FALSE", "flag IS UNKNOWN"),
    *("place IS NULL", "place = named_struct('x', 3)", "struct(id, text) = struct(5, 'a')"),
    *("(id, text) IN ((5, 'a'), (7, 'x'))", "named_struct('b', flag).b", "array(flag, NULL)[0]"),
    *("element_at(map('k', flag), 'k')", "try_element_at(array(flag), 2)", "typeof(id) = 'int'"),
    *(
        "array_contains(array(id, 5), 5)",
        "exists(array(id, big), x -> x > 3)",
        "equal_null(id, big)",
    ),
    *("forall(array(id, 7), x -> x IS NOT NULL AND x > 4)", "isnotnull(nullif(id, 5))"),
    *("map_contains_key(map(5, 'a'), coalesce(id, 0))", "arrays_overlap(array(id), array(5, 7))"),
    *(
        "text LIKE 'a%'",
        "text LIKE '%b'",
        "text LIKE 'a_'",
        "text NOT LIKE 'a%'",
        "text ILIKE 'A%'",
    ),
    *("text LIKE ANY ('a%', '5')", "text LIKE ALL ('a%', '%b')", "text LIKE 'a!%' ESCAPE '!'"),
    *("text RLIKE '^a'", "startswith(text, 'a')", "endswith(text, 'b')", "contains(text, 'b')"),
    *("startswith('abc', text)", "regexp_like(text, '[0-9]')", "text IN ('a', upper(text))"),
    *("id IN (5, NULL)", "id NOT IN (5, NULL)", "id IN (5, big)", "id NOT IN (-1, 7)"),
    *("ratio IN (0.0D, 1.0D)", "ratio NOT IN (double('NaN'))", "price IN (1.5, -2.00)"),
    *("text IN ('', 'ab', '5')", "day IN ('2024-01-01', '2024-01-02')", "flag IN (true, NULL)"),
    *("at IN (timestamp'2024-03-01 10:00:00')", "typeof(text) = typeof(day)"),
)


class RandomConditions:
    """Draws conditions. `drawn`: how often each kind came."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.drawn: Counter[str] = Counter()
        self._leaves: Mapping[str, Callable[[], str]] = {
            "whole": lambda: self._chance.choice(_WHOLE),
            "comparison": self._comparison,
            "between": self._between,
            "null test": self._null_test,
        }
        self._nodes: Mapping[str, str] = {
            "and": "{} AND {}",
            "or": "{} OR {}",
            "not": "NOT ({})",
            "if": "IF({}, {}, {})",
            "case": "CASE WHEN {} THEN {} WHEN {} THEN {} END",
            "case of a value": "CASE id WHEN 5 THEN {} WHEN 7 THEN {} ELSE {} END",
            "coalesce": "coalesce({}, {}, {})",
            "nvl": "nvl({}, {})",
            "nvl2": "nvl2({}, {}, {})",
            "nullif": "nullif({}, {})",
            "equal": "({}) = ({})",
            "unlike": "({}) <> ({})",
            "safe": "({}) <=> ({})",
            "in": "({}) IN ({}, true)",
            "test": "({}) IS TRUE",
            "null": "({}) IS NULL",
            "greatest": "greatest({}, {}, {})",
            "decode": "decode(text, 'a', {}, 'x', {}, {})",
            "array": "array({}, {})[1]",
            "struct": "named_struct('b', {}).b",
            "lambda": "exists(array({}, {}), b -> b)",
        }

    @property
    def kinds(self) -> frozenset[str]:
        """All kinds that there are."""
        return frozenset((*self._leaves, *self._nodes))

    def draw(self) -> str:
        """Return a condition; the first connective is mostly an `AND`, as users write."""
        depth = self._chance.choice((0, 1, 1, 2, 3))
        if self._chance.random() < 0.4:
            return f"({self._condition(depth)}) AND ({self._condition(depth)})"
        return self._condition(depth)

    def _condition(self, depth: int) -> str:
        choices = self._leaves if depth <= 0 else self._nodes
        kind = self._chance.choice(list(choices))
        self.drawn[kind] += 1
        if depth <= 0:
            return self._leaves[kind]()
        template = self._nodes[kind]
        parts = [self._condition(depth - 1) for _ in range(template.count("{}"))]
        if kind in ("and", "or"):
            parts = [f"({part})" for part in parts]
        return template.format(*parts)

    def _comparison(self) -> str:
        values = _VALUES[self._chance.choice(list(_VALUES))]
        left, right = self._chance.choice(values), self._chance.choice(values)
        return f"{left} {self._chance.choice(_OPERATORS)} {right}"

    def _between(self) -> str:
        values = _VALUES[self._chance.choice(list(_VALUES))]
        value, low, high = (self._chance.choice(values) for _ in range(3))
        return f"{value} BETWEEN {low} AND {high}"

    def _null_test(self) -> str:
        value = self._chance.choice(_VALUES[self._chance.choice(list(_VALUES))])
        return f"{value} IS {self._chance.choice(('', 'NOT '))}NULL"
