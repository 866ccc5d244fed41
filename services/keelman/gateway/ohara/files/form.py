"""Reads a file and the texts beside it from a form; the file's bytes go through the disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from keelman.gateway.ohara.wire.call import OharaCall
from keelman.gateway.ohara.wire.errors import bad_value, illegal_argument, unsupported
from keelman.gateway.ohara.wire.json_types import parsed, type_name
from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP, ObjectKey
from keelman.gateway.ohara.wire.values import sent

FORM = "multipart/form-data"
FILE, GROUP, TAGS = "file", "group", "tags"
MAX_BYTES = 50 * 1024 * 1024
"""The limit of the whole body."""
MAX_TEXT = 256 * 1024
MAX_NAME = 255
SECONDS = 300.0
_FOLDERS = frozenset("/\\\0\r\n")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of a form, with its new key. `file` is positioned at its beginning."""

    key: ObjectKey
    size: int
    tags: dict[str, Any]
    file: UploadFile


@asynccontextmanager
async def uploaded(call: OharaCall) -> AsyncIterator[Upload]:
    """Yields the file of a form, for the duration of the block. Raises OharaError for a body that is no form, is too
    large, or has no file."""
    if call.content_type != FORM:
        raise unsupported(call.target)
    try:
        async with asyncio.timeout(SECONDS):
            form = await _parse(call)
    except TimeoutError:
        raise illegal_argument(f"the request's body did not come within {SECONDS:.0f} s") from None
    try:
        yield _upload(form)
    finally:
        await form.close()


async def _parse(call: OharaCall) -> FormData:
    body = call.pieces(MAX_BYTES)
    parser = MultiPartParser(Headers(dict(call.headers)), body, max_files=1, max_fields=20, max_part_size=MAX_TEXT)
    try:
        return await parser.parse()
    except (MultiPartException, UnicodeDecodeError) as error:
        raise bad_value(f"the form cannot be read: {getattr(error, 'message', error)}") from None


def _upload(form: FormData) -> Upload:
    file = form.get(FILE)
    if not isinstance(file, UploadFile):
        raise bad_value(f"Request is missing required form field '{FILE}'")
    name, group = file.filename or "", _text(form, GROUP) or DEFAULT_GROUP
    if not name:
        raise bad_value('the value of "filename" can\'t be empty string!!!')
    for word, text in (("filename", name), (GROUP, group)):
        if len(text) > MAX_NAME or {*text} & _FOLDERS or text in (".", ".."):
            raise bad_value(
                f"{word}: {text[:40]!r} is not legal: a name without folders, at most {MAX_NAME} characters"
            )
    tags = _text(form, TAGS)
    return Upload(ObjectKey(group, name), file.size or 0, _tags(tags) if tags else {}, file)


def _tags(text: str) -> dict[str, Any]:
    value = parsed(text.encode())
    if not isinstance(value, dict):
        raise bad_value(f'the {TAGS} must be JsObject type, but actual type is "{type_name(value)}"')
    tags: dict[str, Any] = sent({TAGS: value}).get(TAGS, {})
    return tags


def _text(form: FormData, field: str) -> str:
    value = form.get(field, "")
    return value if isinstance(value, str) else ""
