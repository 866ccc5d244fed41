"""Gathers the workers' metrics of their connectors, named as in managed Connect services, into one scrape."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from keelman.model.errors import KeelmanError
from keelman.runtime.exposition import labels_of

FRESH_SECONDS = 5.0
ANSWER_SECONDS = 3.0
AT_ONCE = 16
TARGET = b"/metrics"
# Only the families with these names begin with a capital.
_HEAD = re.compile(r"# (?:HELP|TYPE) ([A-Z][A-Za-z]+) .*")
_SAMPLE = re.compile(r"([A-Z][A-Za-z]+)\{(.*)\} (\S+)")


class WorkerFigures:
    """Scrapes each worker at most every few seconds, for any number of scrapers. Leaves out workers
    without an answer."""

    def __init__(self, ask: Callable[[str, bytes], Awaitable[str]]) -> None:
        """`ask` reads a path of the worker at a URL. It raises KeelmanError."""
        self._ask = ask
        self._alone = asyncio.Lock()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._made = b""
        self._made_at = float("-inf")

    async def text(self, workers: Mapping[str, Sequence[str]]) -> bytes:
        """Returns the exposition: the samples of the workers' URLs by cluster name, with that name as
        one more label."""
        async with self._alone:
            if time.monotonic() - self._made_at >= FRESH_SECONDS:
                sources = [(cluster, url) for cluster, urls in workers.items() for url in urls]
                texts = await asyncio.gather(*(self._of(url) for _, url in sources))
                self._made = merged((cluster, text) for (cluster, _), text in zip(sources, texts, strict=True))
                self._made_at = time.monotonic()
            return self._made

    async def _of(self, url: str) -> str:
        async with self._places:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await self._ask(url, TARGET)
            except (KeelmanError, TimeoutError):
                return ""


def merged(texts: Iterable[tuple[str, str]]) -> bytes:
    """Merges the expositions of workers, each with its cluster's name, and keeps only these families. Pure."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for cluster, text in texts:
        label = labels_of({"worker_cluster": cluster})
        for line in text.splitlines():
            if (head := _HEAD.fullmatch(line)) is not None:
                lines_of_head = heads.setdefault(head[1], [])
                if line not in lines_of_head:
                    lines_of_head.append(line)
            elif (sample := _SAMPLE.fullmatch(line)) is not None:
                samples.setdefault(sample[1], []).append(f"{sample[1]}{{{sample[2]},{label}}} {sample[3]}")
    lines = (line for family, family_lines in samples.items() for line in (*heads.get(family, ()), *family_lines))
    return "".join(f"{line}\n" for line in lines).encode()
