"""Reads objects of buckets: from a server with S3's protocol, or from a folder that has a folder for each bucket.

S3 needs the extra keelman[s3]. Versions of objects are S3's; in a folder the file `KEY@VERSION`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from keelman.model.errors import (
    FailedPrecondition,
    InvalidArgument,
    KeelmanError,
    NotFound,
    PermissionDenied,
    Unavailable,
)
from keelman.model.plugins.plugin_import import PluginSource
from keelman.state.plugins.storage import CHUNK_BYTES

URL = re.compile(r"https?://[^/\s@]+/?")
REQUEST_SECONDS, RETRY_SECONDS = 20, 5
DEFAULT_REGION = "us-east-1"


class Buckets(Protocol):
    """Reads objects of the buckets of this installation."""

    def read(self, source: PluginSource) -> AsyncIterator[bytes]:
        """Yields the bytes of an object.

        Raises NotFound (OBJECT_NOT_FOUND), PermissionDenied (OBJECT_DENIED), and Unavailable if the server or folder
        itself cannot be reached.
        """


def opened_buckets(
    place: str, default: Path, *, region: str = "", access_key_id: str = "", secret_access_key: str = ""
) -> Buckets:
    """Returns the buckets at the URL of a server or in a folder; in the default folder if `place` is empty. Makes no
    call yet.

    Raises InvalidArgument if `place` is neither, FailedPrecondition if the extra is not installed.
    """
    if "://" not in place:
        return FolderBuckets(Path(place).expanduser() if place else default, "state.buckets")
    if not URL.fullmatch(place):
        raise InvalidArgument.of("state.buckets", place, "the path of a folder, or http(s)://host:port")
    if bool(access_key_id) != bool(secret_access_key):
        missing = "buckets_secret_access_key" if access_key_id else "buckets_access_key_id"
        raise InvalidArgument.of(f"state.{missing}", "", "set together with the other of the two")
    try:
        import obstore  # noqa: F401, PLC0415  (only who has buckets there needs it)
    except ImportError:
        raise FailedPrecondition(
            f"state.buckets: {place} needs a library that is not installed: pip install 'keelman[s3]'",
            reason="EXTRA_MISSING",
        ) from None
    return S3Buckets(
        place.rstrip("/"), region or os.environ.get("AWS_REGION") or DEFAULT_REGION, access_key_id, secret_access_key
    )


@dataclass(frozen=True, slots=True)
class FolderBuckets:
    """A folder with a folder for each bucket. `setting` is its name in messages."""

    root: Path
    setting: str

    async def read(self, source: PluginSource) -> AsyncIterator[bytes]:
        """See Buckets."""
        descriptor = await asyncio.to_thread(self._open, source)
        with os.fdopen(descriptor, "rb") as file:
            while piece := await asyncio.to_thread(file.read, CHUNK_BYTES):
                yield piece

    def _open(self, source: PluginSource) -> int:
        root = self.root.resolve()
        name = f"{source.key}@{source.version}" if source.version else source.key
        parts = name.split("/")
        if not {"", ".", ".."}.isdisjoint(parts):
            raise _no_object(source, f"in {self.setting} {root}: a key has no empty part, and no part '.' or '..'")
        try:
            file = root.joinpath(source.bucket, *parts).resolve()
            if not file.is_relative_to(root / source.bucket):
                raise _denied(source, f"it leads out of {root / source.bucket}")
            descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            bucket = (root / source.bucket).is_dir()
            what = f"it has no file {name}" if bucket else "no such folder"
            raise _no_object(source, f"in {root / source.bucket} ({self.setting}): {what}") from None
        except PermissionError as error:
            raise _denied(source, f"{error.filename}: {error.strerror}") from None
        except OSError as error:
            raise _no_object(source, f"in {root / source.bucket}: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _no_object(source, f"in {root / source.bucket}: {name} is no file")
        return descriptor


@dataclass(frozen=True, slots=True)
class S3Buckets:
    """A server of the S3 protocol. Without keys these come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the
    environment; if there are none either, calls are not signed."""

    endpoint: str
    region: str
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)

    async def read(self, source: PluginSource) -> AsyncIterator[bytes]:
        """See Buckets."""
        import obstore  # noqa: PLC0415

        options: Any = {"version": source.version} if source.version else {}
        with self._answers(source):
            answer = await obstore.get_async(self.store(source.bucket), source.key, options=options)
            async for piece in answer.stream(min_chunk_size=CHUNK_BYTES):
                view = memoryview(piece)
                for begin in range(0, len(view), CHUNK_BYTES):
                    yield bytes(view[begin : begin + CHUNK_BYTES])

    def store(self, bucket: str) -> Any:
        """Returns a bucket, as obstore has it."""
        from obstore.store import S3Store  # noqa: PLC0415

        keys: dict[str, Any] = {}
        if self.access_key_id:
            keys = {"access_key_id": self.access_key_id, "secret_access_key": self.secret_access_key}
        elif not os.environ.get("AWS_ACCESS_KEY_ID"):
            keys = {"skip_signature": True}
        return S3Store(
            bucket,
            endpoint=self.endpoint,
            region=self.region,
            virtual_hosted_style_request=False,
            client_options={
                "allow_http": self.endpoint.startswith("http://"),
                "timeout": timedelta(seconds=REQUEST_SECONDS),
                "connect_timeout": timedelta(seconds=RETRY_SECONDS),
            },
            retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            **keys,
        )

    @contextlib.contextmanager
    def _answers(self, source: PluginSource) -> Iterator[None]:
        from obstore import exceptions as errors  # noqa: PLC0415

        try:
            yield
        except (FileNotFoundError, errors.NotFoundError):
            raise _no_object(source, f"at {self.endpoint}") from None
        except (errors.InvalidPathError, ValueError) as error:
            raise _no_object(source, f"at {self.endpoint}: {_line(error)}") from None
        except (PermissionError, errors.PermissionDeniedError, errors.UnauthenticatedError):
            raise _denied(source, f"{self.endpoint} refuses the access key {self.access_key_id!r}") from None
        except (OSError, errors.BaseError) as error:
            raise Unavailable(f"{source}: {self.endpoint} (state.buckets): {_line(error)}", reason="BUCKETS") from error


def _no_object(source: PluginSource, where: str) -> KeelmanError:
    return NotFound(f"no object {source} {where}", reason="OBJECT_NOT_FOUND")


def _denied(source: PluginSource, reason: str) -> KeelmanError:
    return PermissionDenied(f"{source} may not be read: {reason}", reason="OBJECT_DENIED")


def _line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
