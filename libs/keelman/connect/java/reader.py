"""Reads the text of a Java regular expression piece by piece: characters, escapes, flags."""

from __future__ import annotations

import unicodedata

from keelman.connect.java import char_sets as sets
from keelman.connect.java.char_sets import Ranges

_FLAGS = "idmsux"
_CLASSES = {"d": sets.DIGIT, "w": sets.WORD, "s": sets.SPACE, "h": sets.HORIZONTAL, "v": sets.VERTICAL}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


class PatternError(ValueError):
    """A text that is no pattern of Java's, or a pattern that is not supported here."""

    def __init__(self, reason: str, pattern: str = "", at: int = -1) -> None:
        super().__init__(reason + (f" near index {at}" if at >= 0 else "") + (f"\n{pattern}" if pattern else ""))


class TextReader:
    """A place in a text, and the flags that are set there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.flags: frozenset[str] = frozenset()

    def error(self, reason: str, *, before: int = 0) -> PatternError:
        """Returns an error at this place, or at `before` characters before it."""
        return PatternError(reason, self._text, self._at - before)

    def has(self, flag: str) -> bool:
        """Whether a flag is set."""
        return flag in self.flags

    def more(self) -> bool:
        """Whether any text is left."""
        return self._at < len(self._text)

    def peek(self, ahead: int = 0) -> str:
        """Returns the next character; empty at the end."""
        return self._text[self._at + ahead : self._at + ahead + 1]

    def next(self) -> str:
        """Takes the next character. Raises PatternError at the end."""
        if not self.more():
            raise self.error("Unexpected end of the pattern")
        self._at += 1
        return self._text[self._at - 1]

    def take(self, text: str) -> bool:
        """Takes this text if it comes next."""
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def until(self, end: str, missing: str) -> str:
        """Takes and returns the text before `end`, and takes `end` too."""
        end_at = self._text.find(end, self._at)
        if end_at < 0:
            raise self.error(missing)
        text, self._at = self._text[self._at : end_at], end_at + len(end)
        return text

    def digits(self, most: int = 1_000, of: str = "0123456789") -> str:
        """Takes all digits that come next, at most `most`."""
        start = self._at
        while self._at - start < most and self.more() and self.peek() in of:
            self._at += 1
        return self._text[start : self._at]

    def quoted(self) -> str:
        """After a backslash: takes the text between Q and \\E, or the end."""
        self.next()
        end = self._text.find("\\E", self._at)
        text, self._at = (self._text[self._at :], len(self._text)) if end < 0 else (self._text[self._at : end], end + 2)
        return text

    def skip_comments(self) -> None:
        """With the flag x: skips white space, and the text from # to the end of its line."""
        while self.has("x") and self.more() and self.peek() in " \t\n\v\f\r#":
            if self.next() == "#":
                while self.more() and self.next() not in "\n\r\x85\u2028\u2029":
                    pass

    def change_flags(self) -> bool:
        """After `(?`: sets flags for the rest of the group around, True, or for the group that begins, False."""
        on, flags = True, set(self.flags)
        while True:
            char = self.next()
            if char == "-" and on:
                on = False
            elif char in _FLAGS:
                (flags.add if on else flags.discard)(char)
            elif char == "U":
                raise self.error("the flag U is not supported here")
            elif char in ":)":
                self.flags = frozenset(flags)
                return char == ")"
            else:
                raise self.error("Unknown inline modifier" if char.isalpha() else "Unknown group type")

    def folded(self, ranges: Ranges) -> Ranges:
        """Adds the other case of its letters, if the flags require it."""
        return sets.any_case(ranges, unicode=self.has("u")) if self.has("i") else ranges

    def escaped_set(self) -> Ranges:
        """After a backslash: takes the class or the character and returns its set."""
        char = self.peek()
        if char in ("p", "P"):
            self.next()
            char_set = self._property()
            return sets.complement(char_set) if char == "P" else char_set
        if char and char.lower() in _CLASSES:
            self.next()
            char_set = _CLASSES[char.lower()]
            return sets.complement(char_set) if char.isupper() else char_set
        return self.folded(sets.chars(self.escaped_char()))

    def escaped_char(self) -> str:
        """After a backslash: takes the escape of one character and returns the character."""
        char = self.next()
        if char in _CONTROLS:
            return _CONTROLS[char]
        numbered = {"0": self._octal, "x": self._hex, "u": self._unicode, "c": self._control, "N": self._named}
        if char in numbered:
            return numbered[char]()
        if char.isascii() and char.isalpha():
            raise self.error("Illegal/unsupported escape sequence")
        return char

    def _control(self) -> str:
        return chr(ord(self.next()) ^ 64)

    def _octal(self) -> str:
        first = self.digits(1, "01234567")
        if not first:
            raise self.error("Illegal octal escape sequence")
        return chr(int(first + self.digits(2 if first <= "3" else 1, "01234567"), 8))

    def _hex(self) -> str:
        if self.take("{"):
            text = self.until("}", "Unclosed hexadecimal escape sequence")
            try:
                return chr(int(text, 16))
            except (ValueError, OverflowError):
                raise self.error("Illegal hexadecimal escape sequence") from None
        text = self.digits(2, "0123456789abcdefABCDEF")
        if len(text) < 2:
            raise self.error("Illegal hexadecimal escape sequence")
        return chr(int(text, 16))

    def _unicode(self) -> str:
        text = self.digits(4, "0123456789abcdefABCDEF")
        if len(text) < 4:
            raise self.error("Illegal Unicode escape sequence")
        code = int(text, 16)
        if 0xD800 <= code < 0xDC00 and self.take("\\u"):
            low = int(self.digits(4, "0123456789abcdefABCDEF") or "0", 16)
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))
            raise self.error("half a surrogate pair is not supported here")
        return chr(code)

    def _named(self) -> str:
        if not self.take("{"):
            raise self.error("Illegal character name escape sequence")
        name = self.until("}", "Unclosed character name escape sequence")
        try:
            return unicodedata.lookup(name)
        except KeyError:
            raise self.error(f"Unknown character name [{name}]") from None

    def _property(self) -> Ranges:
        name = self.until("}", "Unclosed character family") if self.take("{") else self.next()
        char_set = sets.named(name, any_case=self.has("i"))
        if char_set is None:
            raise self.error(f"Unknown character property name {{{name}}}, or one that is not supported here")
        return char_set
