"""Worker configurations: properties of workers that are stored under a name, in revisions that never change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from keelman.model.annotations import NO_ANNOTATIONS, Annotations
from keelman.model.errors import NotFound
from keelman.model.resource import Resource


@dataclass(frozen=True, slots=True)
class ConfigurationRevision:
    """One revision of a worker configuration; the content is a file of properties, as it was sent."""

    revision: int
    create_time: datetime
    description: str = ""
    content: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class WorkerConfiguration(Resource):
    """Properties of workers under a name. Times are aware UTC; `etag` changes with every change."""

    NOUN: ClassVar[str] = "worker_configuration"

    revisions: tuple[ConfigurationRevision, ...]
    """The revisions, the newest last; at least one."""
    annotations: Annotations = NO_ANNOTATIONS
    etag: str = ""

    @property
    def latest(self) -> ConfigurationRevision:
        """The newest revision."""
        return self.revisions[-1]

    def revision(self, number: int) -> ConfigurationRevision:
        """Returns one revision; 0 is the newest. Raises NotFound."""
        if not number:
            return self.latest
        for revision in self.revisions:
            if revision.revision == number:
                return revision
        raise NotFound(
            f"worker configuration {self.name!r} has no revision {number}: those there are: "
            f"{', '.join(str(revision.revision) for revision in self.revisions)}",
            metadata={"worker_configuration": self.name, "revision": str(number)},
        )

    @property
    def contents(self) -> Mapping[int, bytes]:
        """The content of each revision."""
        return {revision.revision: revision.content for revision in self.revisions}
