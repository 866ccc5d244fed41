"""Keeps files in a bucket of S3, or of a server with its protocol. Needs the extra keelman[s3].

Credentials come from the same places as for AWS's own tools: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the
environment, a web identity, or the host's metadata service.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import IO, Any

from keelman.model.errors import FailedPrecondition, InvalidArgument, NotFound, Unavailable
from keelman.state.plugins.storage import CHUNK_BYTES

PART_BYTES = 8 << 20
PARTS_AT_ONCE = 2
REQUEST_SECONDS = 60
RETRY_SECONDS = 20
_PLACE = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/+(.*?))?/*")


@dataclass(frozen=True, slots=True)
class S3Storage:
    """`store` is obstore's, `place` its name in messages."""

    store: Any
    place: str
    kind: str = "s3"

    @classmethod
    def of(cls, setting: str, folder: str, *, endpoint: str = "", region: str = "") -> S3Storage:
        """Returns the storage at s3://bucket/prefix, in a folder of its own for one database.

        `endpoint` is the URL of a server other than AWS. Raises InvalidArgument for another setting or endpoint,
        FailedPrecondition if the extra is not installed. Makes no call yet.
        """
        match = _PLACE.fullmatch(setting)
        if match is None:
            raise InvalidArgument.of("state.plugin_storage", setting, "s3://bucket, or s3://bucket/prefix")
        if endpoint and not re.fullmatch(r"https?://[^/\s]+/?", endpoint):
            raise InvalidArgument.of("state.plugin_s3_endpoint", endpoint, "http(s)://host:port")
        try:
            from obstore.store import S3Store  # noqa: PLC0415  (only who keeps files there needs it)
        except ImportError:
            raise FailedPrecondition(
                f"state.plugin_storage: {setting} needs a library that is not installed: pip install 'keelman[s3]'",
                reason="EXTRA_MISSING",
            ) from None
        bucket, prefix = match[1], "/".join(filter(None, (match[2], folder)))
        more: dict[str, Any] = {"endpoint": endpoint.rstrip("/")} if endpoint else {}
        if region:
            more["region"] = region
        store = S3Store(
            bucket,
            prefix=prefix,
            client_options={
                "allow_http": endpoint.startswith("http://"),
                "timeout": timedelta(seconds=REQUEST_SECONDS),
            },
            retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            **more,
        )
        return cls(store, f"s3://{bucket}/{prefix}")

    async def put(self, key: str, file: IO[bytes]) -> None:
        """See PluginStorage. There is nothing under the key until all parts have come."""
        import obstore  # noqa: PLC0415

        file.seek(0)
        with self._answers(key):
            await obstore.put_async(self.store, key, file, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)

    async def read(self, key: str, offset: int = 0) -> AsyncIterator[bytes]:
        """See PluginStorage."""
        import obstore  # noqa: PLC0415

        with self._answers(key):
            size = (await obstore.head_async(self.store, key))["size"]
            if offset >= size:
                return
            answer = await obstore.get_async(self.store, key, options={"range": {"offset": offset}})
            async for piece in answer.stream(min_chunk_size=CHUNK_BYTES):
                view = memoryview(piece)
                for begin in range(0, len(view), CHUNK_BYTES):
                    yield bytes(view[begin : begin + CHUNK_BYTES])

    async def delete(self, key: str) -> None:
        """See PluginStorage."""
        import obstore  # noqa: PLC0415

        with contextlib.suppress(NotFound), self._answers(key):
            await obstore.delete_async(self.store, key)

    async def stored(self) -> Mapping[str, datetime]:
        """See PluginStorage. Parts of interrupted uploads are not included: a rule of the bucket may drop them."""
        import obstore  # noqa: PLC0415

        times: dict[str, datetime] = {}
        with self._answers(""):
            async for batch in obstore.list(self.store):
                times |= {entry["path"]: entry["last_modified"] for entry in batch}
        return times

    @contextlib.contextmanager
    def _answers(self, key: str) -> Iterator[None]:
        from obstore.exceptions import BaseError, NotFoundError  # noqa: PLC0415

        try:
            yield
        except (FileNotFoundError, NotFoundError):
            raise NotFound(f"{self.place} has no file {key}") from None
        except (OSError, BaseError) as error:
            text = str(error).partition("\n")[0]
            raise Unavailable(f"state.plugin_storage: {self.place}: {text}", reason="PLUGIN_STORAGE") from error
