"""A file of properties, a worker's or a connector's."""

from __future__ import annotations

from pathlib import Path

import javaproperties

from keelman.model.errors import InvalidArgument


def file_properties(file: Path) -> dict[str, str]:
    """The file's properties as Java reads them, values trimmed. Raises InvalidArgument."""
    try:
        with file.open("rb") as stream:
            return {k: v.strip() for k, v in javaproperties.load(stream).items()}
    except OSError as error:
        raise InvalidArgument(f"worker.properties_file: {str(file)!r} cannot be read: {error.strerror}") from None
    except javaproperties.InvalidUEscapeError as error:
        raise InvalidArgument(f"worker.properties_file: {str(file)!r} is not a .properties file: {error}") from None
