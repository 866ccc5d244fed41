"""The common base of worlds of words: a line is a command, and its output follows it."""

import shlex


class ScriptWorld:
    """Each command is a method `do_<verb>`, called with the line's words, those with = by name."""

    def run(self, line: str) -> list[str]:
        """Runs one command; returns its output lines."""
        verb, *words = shlex.split(line, comments=True)
        options = dict(w.split("=", 1) for w in words if "=" in w)
        return getattr(self, f"do_{verb}")(*(w for w in words if "=" not in w), **options) or []
