"""Translates Java's regular expressions (java.util.regex.Pattern, Java 17) and replacements for Python's `re`.

Constructs with another meaning in Python are expanded: classes as ranges of code points, `.`, `^` and `$` by
Java's line ends, flags where they apply. Unsupported constructs are refused, never approximated: `\\G`, `\\X`,
`\\b{g}`, the flag U, look-behinds without a fixed length, references to incomplete groups, names of scripts and
blocks.
Patterns match in bounded time: `bounded_match.py`.
tests/recorded/data/java_regex.json holds Java's results for a table of patterns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from keelman.connect.java import char_sets as sets
from keelman.connect.java.bounded_match import BoundedPattern
from keelman.connect.java.char_sets import Ranges
from keelman.connect.java.reader import PatternError, TextReader

__all__ = ["JavaPattern", "PatternError"]

_AT_END = r"(?=\r\n\Z|(?<!\r)\n\Z|[\r\x85\u2028\u2029]\Z|\Z)"
_LINE_END = r"(?:(?=[\r\x85\u2028\u2029]|\Z)|(?<!\r)(?=\n))"
_LINE_BEGIN = r"(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))(?!\Z)"
_UNIX_AT_END, _UNIX_LINE_END, _UNIX_LINE_BEGIN = r"(?=\n?\Z)", r"(?=\n|\Z)", r"(?:\A|(?<=\n))(?!\Z)"
_LOOKS = {"?:": "(?:", "?=": "(?=", "?!": "(?!", "?>": "(?>", "?<=": "(?<=", "?<!": "(?<!"}


class JavaPattern:
    """A compiled pattern. Raises PatternError, a ValueError, for an invalid Java pattern or an unsupported one.

    Its methods raise SlowPattern, a ConnectError, for a text that takes too long."""

    def __init__(self, pattern: str, flags: str = "") -> None:
        """`flags` are set from its begin on, as by `(?i)`."""
        self.pattern = pattern
        self._bounded = _bounded(pattern, flags)

    def matches(self, text: str) -> bool:
        """Whether the whole text matches (Matcher.matches)."""
        return self._bounded.matches(text)

    def first(self, text: str) -> list[str | None] | None:
        """Returns the first match, then its groups (Matcher.find); None when there is none."""
        marks = self._bounded.first(text)
        return None if marks is None else _groups(text, marks)

    def replace_first(self, text: str, replacement: str) -> str:
        """Does Matcher.replaceFirst: `$1` and `${name}` are groups, a backslash makes the next character literal.

        Raises PatternError for a replacement that Java refuses.
        """
        marks = self._bounded.first(text)
        if marks is None:
            return text
        expanded = _expanded(replacement, _groups(text, marks), self._bounded.compiled.groupindex)
        return text[: marks[0]] + expanded + text[marks[1] :]


def _groups(text: str, marks: Sequence[int]) -> list[str | None]:
    spans = zip(marks[::2], marks[1::2], strict=True)
    return [None if begin < 0 else text[begin:end] for begin, end in spans]


@lru_cache(maxsize=256)
def _bounded(pattern: str, flags: str) -> BoundedPattern:
    try:
        return BoundedPattern(_Translator(pattern, flags).whole(), pattern)
    except RecursionError:
        raise PatternError("is nested too deeply", pattern) from None
    except (re.error, OverflowError) as error:
        raise PatternError(f"cannot be used here: {error}", pattern) from None


class _Translator(TextReader):
    """One pass over a pattern, from left to right, like Java's own compiler."""

    def __init__(self, pattern: str, flags: str) -> None:
        super().__init__(pattern)
        self.flags = frozenset(flags)
        self._groups = 0
        self._closed: set[int] = set()
        self._names: dict[str, int] = {}

    def whole(self) -> str:
        """Returns the pattern for Python."""
        pattern = self._alternatives()
        if self.more():
            raise self.error("Unmatched closing ')'")
        return pattern

    def _alternatives(self) -> str:
        before = self.flags
        branches = [self._sequence()]
        while self.take("|"):
            branches.append(self._sequence())
        self.flags = before
        return "|".join(branches)

    def _sequence(self) -> str:
        pieces: list[str] = []
        while True:
            self.skip_comments()
            if not self.more() or self.peek() in "|)":
                return "".join(pieces)
            if self.peek() in "*+?":
                raise self.error(f"Dangling meta character '{self.peek()}'")
            if self.peek() == "{":
                if not pieces:
                    raise self.error("Illegal repetition")
                self._repeated("")  # Java repeats nothing when a repetition is followed by another
                continue
            atom = self._atom()
            if atom is not None:
                pieces.append(self._repeated(atom))

    def _repeated(self, atom: str) -> str:
        self.skip_comments()
        count = ""
        if self.more() and self.peek() in "*+?":
            count = self.next()
        elif self.take("{"):
            count = self._bounds()
        if not count:
            return atom
        if self.more() and self.peek() in "+?":
            count += self.next()
        return f"(?:{atom}){count}"

    def _bounds(self) -> str:
        least = self.digits()
        most = least
        if not least:
            raise self.error("Illegal repetition")
        if self.take(","):
            most = self.digits()
        if not self.take("}"):
            raise self.error("Unclosed counted closure")
        if (most and int(most) < int(least)) or int(most or least) >= 1 << 31:
            raise self.error("Illegal repetition range")
        return f"{{{least}}}" if most == least else f"{{{least},{most}}}"

    def _atom(self) -> str | None:
        """Translates an atom; None for a change of flags, which matches nothing by itself."""
        char = self.next()
        if char in ("(", "[", "\\"):
            return {"(": self._group, "[": self._class, "\\": self._escape}[char]()
        unix, lines = self.has("d"), self.has("m")
        if char == ".":
            ends = sets.chars("\n") if unix else sets.LINE_ENDS
            return sets.written(sets.complement(sets.NOTHING if self.has("s") else ends))
        if char == "^":
            return (_UNIX_LINE_BEGIN if unix else _LINE_BEGIN) if lines else r"\A"
        if char == "$":
            whole, line = (_UNIX_AT_END, _UNIX_LINE_END) if unix else (_AT_END, _LINE_END)
            return line if lines else whole
        return self._literal(char)

    def _class(self) -> str:
        return sets.written(ClassReader(self).after_bracket())

    def _literal(self, char: str) -> str:
        return sets.written(self.folded(sets.chars(char)))

    def _group(self) -> str | None:
        before, number = self.flags, 0
        opening = next((kind for kind in ("?<=", "?<!", "?:", "?=", "?!", "?>") if self.take(kind)), "")
        if opening:
            look = _LOOKS[opening]
        elif self.take("?<"):
            look, number = self._named_group()
        elif self.take("?"):
            if self.change_flags():
                return None
            look = "(?:"
        else:
            self._groups += 1
            look, number = "(", self._groups
        look += self._alternatives()
        if not self.take(")"):
            raise self.error("Unclosed group")
        self._closed.add(number)
        self.flags = before
        return look + ")"

    def _named_group(self) -> tuple[str, int]:
        name = self.until(">", "named capturing group is missing trailing '>'")
        if not re.fullmatch("[a-zA-Z][a-zA-Z0-9]*", name):
            raise self.error("capturing group name does not start with a Latin letter")
        if name in self._names:
            raise self.error(f"Named capturing group <{name}> is already defined")
        self._groups += 1
        self._names[name] = self._groups
        return f"(?P<{name}>", self._groups

    def _escape(self) -> str:
        char = self.peek()
        if char == "Q":
            return "".join(map(self._literal, self.quoted())) or "(?:)"
        if char == "k":
            return self._named_reference()
        if char in "123456789":
            return self._reference()
        plain = {
            "A": r"\A",
            "z": r"\Z",
            "Z": _UNIX_AT_END if self.has("d") else _AT_END,
            "b": r"\b",
            "B": r"\B",
            "R": r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])",
        }
        if char in plain:
            self.next()
            if char == "b" and self.more() and self.peek() == "{":
                raise self.error("\\b{...} is not supported here")
            return plain[char]
        if char in "GX":
            raise self.error(f"\\{char} is not supported here")
        return sets.written(self.escaped_set())

    def _named_reference(self) -> str:
        self.next()
        if not self.take("<"):
            raise self.error("\\k is not followed by '<' for named capturing group")
        name = self.until(">", "named capturing group is missing trailing '>'")
        if name not in self._names:
            raise self.error(f"named capturing group <{name}> does not exist")
        return self._refer(self._names[name])

    def _reference(self) -> str:
        number = int(self.next())
        while self.more() and self.peek() in "0123456789":
            longer = number * 10 + int(self.peek())
            if longer > self._groups:
                break
            self.next()
            number = longer
        return self._refer(number)

    def _refer(self, number: int) -> str:
        if number not in self._closed:
            raise self.error(f"a reference to group {number} before its end is not supported here")
        if self.has("i"):
            return f"(?{'u' if self.has('u') else 'a'}i:(?:\\{number}))"
        return f"(?:\\{number})"


def _expanded(replacement: str, groups: Sequence[str | None], names: Mapping[str, int]) -> str:
    reader, parts = TextReader(replacement), []
    while reader.more():
        char = reader.next()
        if char == "\\":
            if not reader.more():
                raise PatternError("character to be escaped is missing")
            parts.append(reader.next())
        elif char == "$":
            parts.append(groups[_group_of(reader, len(groups) - 1, names)] or "")
        else:
            parts.append(char)
    return "".join(parts)


def _group_of(reader: TextReader, groups: int, names: Mapping[str, int]) -> int:
    if not reader.more():
        raise PatternError("Illegal group reference: group index is missing")
    if reader.take("{"):
        name = reader.until("}", "named capturing group is missing trailing '}'")
        if name not in names:
            raise PatternError(f"No group with name {{{name}}}")
        return names[name]
    if reader.peek() not in "0123456789":
        raise PatternError("Illegal group reference")
    number = int(reader.next())
    if number > groups:
        raise PatternError(f"No group {number}")
    while reader.more() and reader.peek() in "0123456789" and number * 10 + int(reader.peek()) <= groups:
        number = number * 10 + int(reader.next())
    return number


class ClassReader:
    """Reads a character class from a reader placed after its `[`: unions, intersections and negations as sets."""

    def __init__(self, reader: TextReader) -> None:
        self._reader = reader

    def after_bracket(self) -> Ranges:
        """Reads the class up to and with its `]`. A negation covers the whole class with its intersections."""
        reader = self._reader
        negated = reader.take("^")
        if reader.take("&&") and reader.peek() == "]":
            raise reader.error("Bad class syntax")
        operand = self._operand(first=reader.peek() == "]")
        while reader.take("&&"):
            operand = sets.intersection(operand, self._operand(first=False)) if reader.peek() not in "&]" else operand
        if not reader.take("]"):
            raise reader.error("Unclosed character class", before=1)
        return sets.complement(operand) if negated else operand

    def _operand(self, *, first: bool) -> Ranges:
        """Reads a union, up to the `]` or `&&` that ends it."""
        reader = self._reader
        parts: list[Ranges] = []
        while True:
            reader.skip_comments()
            if not reader.more():
                raise reader.error("Unclosed character class", before=1)
            if reader.peek() == "&" == reader.peek(1) and (parts or not first):
                break
            if reader.peek() == "]" and (parts or not first):
                break
            if reader.take("["):
                parts.append(self.after_bracket())
            else:
                parts.append(self._item())
        return sets.union(*parts)

    def _item(self) -> Ranges:
        """Reads one character, a range of characters, or an escaped class."""
        reader = self._reader
        if reader.peek() == "\\" and reader.peek(1) == "Q":
            reader.next()
            return reader.folded(sets.chars(reader.quoted()))
        if reader.peek() == "\\" and reader.peek(1) in "dDwWsShHvVpP":
            reader.next()
            return reader.escaped_set()
        first = self._char()
        reader.skip_comments()
        if reader.peek() != "-" or reader.peek(1) in ("]", "[", ""):
            return reader.folded(sets.chars(first))
        reader.next()
        reader.skip_comments()
        last = self._char()
        if last < first:
            raise reader.error("Illegal character range")
        return reader.folded(sets.of((ord(first), ord(last))))

    def _char(self) -> str:
        char = self._reader.next()
        return self._reader.escaped_char() if char == "\\" else char
