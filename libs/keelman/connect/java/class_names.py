"""Character classes of Java's regular expressions: unions, intersections and negations, worked out as sets."""

from __future__ import annotations

from keelman.connect.java import char_sets as sets
from keelman.connect.java.char_sets import Ranges
from keelman.connect.java.reader import Reader


class ClassReader:
    """Reads a class from a reader that stands behind its `[`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def after_bracket(self) -> Ranges:
        """The set of the class, up to and with its `]`. A negation is of the whole class, intersections and all."""
        reader = self._reader
        negated = reader.take("^")
        if reader.take("&&") and reader.peek() == "]":
            raise reader.error("Bad class syntax")
        found = self._operand(first=reader.peek() == "]")
        while reader.take("&&"):
            found = sets.intersection(found, self._operand(first=False)) if reader.peek() not in "&]" else found
        if not reader.take("]"):
            raise reader.error("Unclosed character class", before=1)
        return sets.complement(found) if negated else found

    def _operand(self, *, first: bool) -> Ranges:
        """A union, up to the `]` or `&&` that ends it."""
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
        """One character, a range of them, or a class by its escape."""
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
