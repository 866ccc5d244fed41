"""Delivers a stream to compressed objects of a bucket: of an S3 server, or of a folder whose folders are buckets.

The content of an object is kept before it is put. So an agent that was killed in between puts the same one again, under
the same key and with the same bytes, and readers see each object once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from keelman.agent.shipping.bucket_keys import Keys
from keelman.agent.shipping.progress import DeliveryProgress, Pending
from keelman.agent.shipping.source import Batch, Source
from keelman.agent.shipping.target import finished
from keelman.model.errors import FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unavailable
from keelman.runtime.home import write_file

REQUEST_SECONDS, CONNECT_SECONDS, RETRY_SECONDS = 60, 10, 20
DEFAULT_REGION = "us-east-1"


class ObjectStorage(Protocol):
    """The storage that objects are put into."""

    async def put(self, key: str, content: bytes) -> None:
        """Puts a whole object in place of a present one. Raises KeelmanError and OSError."""


@dataclass(frozen=True, slots=True)
class FolderStore:
    """A bucket that is a folder."""

    folder: Path

    async def put(self, key: str, content: bytes) -> None:
        """See Store. Makes the folder."""
        await asyncio.to_thread(write_file, self.folder / key, content, mode=0o644)


@dataclass(frozen=True, slots=True)
class S3Store:
    """A bucket of an S3 server. `store` is obstore's, `place` its name in messages."""

    store: Any
    place: str

    @classmethod
    def of(cls, endpoint: str, region: str, bucket: str, keys: Keys | None = None) -> S3Store:
        """Makes no request yet. Without keys these come from the agent's environment, or the host's metadata service.
        Raises FailedPrecondition without the library."""
        try:
            from obstore.store import S3Store as Made  # noqa: PLC0415  (only who delivers there needs it)
        except ImportError:
            raise FailedPrecondition(
                f"logs cannot be put to {endpoint}: a library is not installed on this node: pip install 'keelman[s3]'",
                reason="EXTRA_MISSING",
            ) from None
        more: dict[str, Any] = {"region": region or os.environ.get("AWS_REGION") or DEFAULT_REGION}
        if keys is not None:
            more |= {"access_key_id": keys.access_key_id, "secret_access_key": keys.secret_access_key}
        options = {
            "allow_http": endpoint.startswith("http://"),
            "timeout": timedelta(seconds=REQUEST_SECONDS),
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        }
        retries = {"max_retries": 2, "retry_timeout": timedelta(seconds=RETRY_SECONDS)}
        store = Made(bucket, endpoint=endpoint, client_options=options, retry_config=retries, **more)
        return cls(store, f"{endpoint}, bucket {bucket}")

    async def put(self, key: str, content: bytes) -> None:
        """See Store."""
        import obstore  # noqa: PLC0415
        from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError  # noqa: PLC0415

        try:
            await obstore.put_async(self.store, key, content, use_multipart=False)
        except (FileNotFoundError, NotFoundError):
            raise NotFound(f"{self.place}: no such bucket") from None
        except (PermissionError, PermissionDeniedError, UnauthenticatedError):
            raise PermissionDenied(f"{self.place}: the server refuses the access key, or its rights") from None
        except (OSError, BaseError) as error:
            raise Unavailable(f"{self.place}: {' '.join(str(error).split())[:300]}") from None


def opened_store(buckets: str, region: str, bucket: str, keys: Keys | None = None) -> ObjectStorage:
    """Opens a bucket in the place that `buckets` names. Raises FailedPrecondition, and InvalidArgument for anything but
    the URL of a server or a folder."""
    if buckets.startswith("/"):
        return FolderStore(Path(buckets) / bucket)
    if buckets.startswith(("http://", "https://")):
        return S3Store.of(buckets, region, bucket, keys)
    raise InvalidArgument.of("state.buckets", buckets, "the URL of an S3 server, or the absolute path of a folder")


@dataclass(frozen=True, slots=True)
class BucketTarget:
    """`keep` stores the content of the next put; `folder` is the prefix of keys. An object is put once it holds
    `most_bytes` of the log, or once its oldest line is `seconds` old. `turns`: how many are in memory at a time."""

    open_store: Callable[[], ObjectStorage]
    folder: str
    keep: Callable[[DeliveryProgress], None]
    turns: asyncio.Semaphore
    most_bytes: int
    seconds: float
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def is_due(self, waiting: int, seconds: float) -> bool:
        """Returns True once there is enough, or it is old enough."""
        return waiting >= self.most_bytes or (waiting > 0 and seconds >= self.seconds)

    @contextlib.asynccontextmanager
    async def opened(self, source: Source) -> AsyncIterator[BucketWriter]:
        """Opens the bucket. Raises KeelmanError."""
        yield BucketWriter(self, self.open_store(), source)


class BucketWriter:
    """Puts objects."""

    def __init__(self, target: BucketTarget, store: ObjectStorage, source: Source) -> None:
        self._target = target
        self._store = store
        self._source = source

    async def resume(self, progress: DeliveryProgress) -> DeliveryProgress:
        """Puts an object again that may not have been put."""
        pending = progress.pending
        if pending is None:
            return progress
        self._source.place(progress)
        length = max(1, pending.end - progress.position)
        batch = await finished(asyncio.to_thread(self._source.read, progress, length, until=pending.end))
        if batch is not None:
            await self._put(pending.key, batch)
        return replace(progress, position=pending.end, mine=pending.mine, pending=None)

    async def write(self, batch: Batch, progress: DeliveryProgress) -> DeliveryProgress:
        """Stores the content of the put, then puts it. Raises KeelmanError."""
        now = self._target.now()
        name = f"{now:%Y-%m-%d}/{now:%H-%M-%S}-{progress.id[:8]}-{progress.position:016d}.log.gz"
        pending = Pending("/".join(filter(None, (self._target.folder, name))), batch.end, batch.mine)
        self._target.keep(replace(progress, pending=pending))
        await self._put(pending.key, batch)
        return replace(progress, position=batch.end, mine=batch.mine, pending=None)

    async def _put(self, key: str, batch: Batch) -> None:
        async with self._target.turns:
            await self._store.put(key, await asyncio.to_thread(_packed, batch))


def _packed(batch: Batch) -> bytes:
    """Returns the same bytes for the same lines."""
    return gzip.compress(b"".join(line + b"\n" for line in batch.lines), 6, mtime=0)
