"""Filters as people write them, close to SQL: `a = 1 and (b is null or c in ('x', 'y'))`.

* comparisons `=` `==` `!=` `<>` `<` `<=` `>` `>=`, `between … and …`, `in (…)`, `like 'prefix%'`
* `is null`, `is nan`, `starts_with(c, 'p')`; `not` before any of these words, or before anything
* columns by dotted name, in backticks or double quotes where a name is odd
* transforms of columns: `bucket(16, c)`, `truncate(4, c)`, `year(c)`, `month`, `day`, `hour`
* literals: numbers, `true`, `false`, `'text'` (a quote is doubled), `X'00ff'`; dates, times,
  timestamps, uuids and exact decimals are text: `d >= '2026-01-31'`

Words are read in either case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from committer.errors import InvalidFilterError
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    Or,
    Predicate,
    Reference,
    StartsWith,
    Transformed,
    negate,
)
from committer.iceberg.expressions.expression_json import DEPTH_MAX, LONG_MAX, LONG_MIN
from committer.iceberg.values.transforms import (
    DAY,
    HOUR,
    MONTH,
    YEAR,
    BucketTransform,
    Transform,
    TruncateTransform,
)

UnboundTerm = Reference | Transformed


def parse_where(text: str) -> Expression:
    """Read an (unbound) filter. Errors: `InvalidFilterError` saying where and what was expected."""
    parser = _Parser(_tokens(text))
    expression = parser.expression()
    parser.end()
    return expression


# --- Tokens --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Token:
    """`kind`: `number`, `text`, `bytes`, `name` (quoted), `word`, `sign` or `end`."""

    kind: str
    text: str
    position: int

    @property
    def word(self) -> str:
        """A word or sign in lower case; nothing for what is quoted."""
        return self.text.lower() if self.kind in ("word", "sign") else ""


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<bytes>[xX]'[^']*')
    | (?P<text>'(?:[^']|'')*')
    | (?P<name>`(?:[^`]|``)*` | "(?:[^"]|"")*")
    | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><=|>=|<>|!=|==|[<>=(),.])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    position = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            rest = text[position:].lstrip()
            raise _unexpected(
                len(text) - len(rest), "a word, a literal or a sign", f"`{rest[:20]}`"
            )
        found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        position = match.end()
    # Each of these adds at most one level to the expression.
    if sum(token.word in ("and", "or", "not", "(") for token in found) > DEPTH_MAX:
        raise InvalidFilterError(
            f"where: more than {DEPTH_MAX} times `and`, `or`, `not` and `(`; lists of values belong"
            " into `in`"
        )
    return found


def _unexpected(position: int, what: str, found: str) -> InvalidFilterError:
    return InvalidFilterError(f"where: at character {position + 1}: expected {what}, found {found}")


def _unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


# --- The parser ----------------------------------------------------------------------------------

_COMPARISONS: Mapping[str, type[LiteralPredicate]] = {
    "=": EqualTo,
    "==": EqualTo,
    "!=": NotEqualTo,
    "<>": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}
_TIME_TRANSFORMS: Mapping[str, Transform] = {
    name: transform
    for transform in (YEAR, MONTH, DAY, HOUR)
    for name in (str(transform), f"{transform}s")
}
_WIDTH_TRANSFORMS: Mapping[str, Callable[[int], Transform]] = {
    "bucket": BucketTransform,
    "truncate": TruncateTransform,
}


class _Parser:
    """Reads tokens from the left, each once."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    # Tokens

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        taken = self._token
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return taken

    def _accept(self, word: str) -> bool:
        if self._token.word != word:
            return False
        self._take()
        return True

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise self._expected(f"`{word}`")

    def _is_call(self) -> bool:
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)].word == "("

    def _expected(self, what: str) -> InvalidFilterError:
        token = self._token
        found = "the end" if token.kind == "end" else f"`{token.text[:50]}`"
        return _unexpected(token.position, what, found)

    def end(self) -> None:
        if self._token.kind != "end":
            raise self._expected("`and`, `or` or the end")

    # Expressions

    def expression(self, *, only_and: bool = False) -> Expression:
        """Parse operands joined by `and` and, unless that binds too loosely here, by `or`."""
        left = self._operand()
        while True:
            if self._accept("and"):
                left = And.of(left, self._operand())
            elif not only_and and self._accept("or"):
                left = Or.of(left, self.expression(only_and=True))
            else:
                return left

    def _operand(self) -> Expression:
        if self._accept("not"):
            return Not.of(self._operand())
        if self._accept("("):
            inner = self.expression()
            self._expect(")")
            return inner
        if self._token.word in ("true", "false"):
            return ALWAYS_TRUE if self._take().word == "true" else ALWAYS_FALSE
        return self._predicate()

    def _predicate(self) -> Expression:
        if self._token.word in ("starts_with", "is_nan") and self._is_call():
            return self._function()
        term = self._term()
        comparison = _COMPARISONS.get(self._token.word)
        if comparison is not None:
            self._take()
            return comparison(term, self._literal())
        question = self._state if self._accept("is") else self._membership
        return negate(question(term)) if self._accept("not") else question(term)

    def _function(self) -> Predicate:
        function = self._take().word
        self._expect("(")
        term = self._term()
        found: Predicate = IsNaN(term)
        if function == "starts_with":
            self._expect(",")
            found = StartsWith(term, self._text())
        self._expect(")")
        return found

    def _state(self, term: UnboundTerm) -> Predicate:
        if self._accept("null"):
            return IsNull(term)
        if self._accept("nan"):
            return IsNaN(term)
        raise self._expected("`null` or `nan`")

    def _membership(self, term: UnboundTerm) -> Expression:
        if self._accept("in"):
            return In(term, self._literals())
        if self._accept("between"):
            low = self._literal()
            self._expect("and")
            return And(GreaterThanOrEqual(term, low), LessThanOrEqual(term, self._literal()))
        if self._accept("like"):
            return self._like(term)
        raise self._expected("a comparison, `is`, `in`, `between` or `like`")

    def _like(self, term: UnboundTerm) -> Predicate:
        token = self._token
        pattern = self._text()
        prefix = pattern.removesuffix("%")
        if "%" in prefix or "_" in prefix or "\\" in prefix:
            raise _unexpected(token.position, "a prefix and `%` alone", token.text[:50])
        return StartsWith(term, prefix) if pattern != prefix else EqualTo(term, prefix)

    # Terms and literals

    def _term(self) -> UnboundTerm:
        if not self._is_call():
            return self._column()
        name = self._token.word
        if name not in _TIME_TRANSFORMS and name not in _WIDTH_TRANSFORMS:
            raise self._expected("a column, a transform of one, `starts_with` or `is_nan`")
        self._take()
        self._expect("(")
        transform = _TIME_TRANSFORMS.get(name)
        if transform is None:
            transform = _WIDTH_TRANSFORMS[name](self._width())
            self._expect(",")
        column = self._column()
        self._expect(")")
        return Transformed(transform, column)

    def _width(self) -> int:
        text = self._token.text
        if self._token.kind != "number" or not text.isdecimal() or not 0 < int(text) < 2**31:
            raise self._expected("a whole number from 1 to 2147483647")
        return int(self._take().text)

    def _column(self) -> Reference:
        parts = [self._name()]
        while self._accept("."):
            parts.append(self._name())
        return Reference(".".join(parts))

    def _name(self) -> str:
        if self._token.kind == "word":
            return self._take().text
        if self._token.kind == "name":
            return _unquoted(self._take().text)
        raise self._expected("a column")

    def _literals(self) -> tuple[object, ...]:
        self._expect("(")
        found = [self._literal()]
        while self._accept(","):
            found.append(self._literal())
        self._expect(")")
        return tuple(found)

    def _text(self) -> str:
        if self._token.kind != "text":
            raise self._expected("text in single quotes")
        return _unquoted(self._take().text)

    def _literal(self) -> object:
        if self._token.word in ("true", "false"):
            return self._take().word == "true"
        match self._token.kind:
            case "text":
                return self._text()
            case "bytes":
                return self._bytes()
            case "number":
                return self._number()
        raise self._expected("a literal")

    def _bytes(self) -> bytes:
        try:
            found = bytes.fromhex(self._token.text[2:-1])
        except ValueError as error:
            raise self._expected("bytes in hexadecimal") from error
        self._take()
        return found

    def _number(self) -> int | float:
        text = self._token.text
        if text.lstrip("+-").isdecimal():
            # More digits would not fit, and reading very many takes long.
            if len(text) > 20 or not LONG_MIN <= int(text) <= LONG_MAX:
                raise self._expected("a whole number of 64 bits")
            self._take()
            return int(text)
        if not math.isfinite(float(text)):
            raise self._expected("a number that a double can hold")
        return float(self._take().text)
