"""Changes the committed offsets of a consumer group from outside: only while the group has no members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiokafka.errors import NoError, for_code
from aiokafka.protocol.admin import DeleteGroupsRequest

from keelman.kafka.error_codes import CODES
from keelman.kafka.groups.offsets import Committed, TopicPart, commit_offsets, committed, delete_offsets, fetch_offsets
from keelman.kafka.groups.requests import ask_group, error_codes
from keelman.model.errors import FailedPrecondition, Unavailable

ANSWER_MS = 10_000
SECONDS = 30.0
HAS_MEMBERS = "GROUP_HAS_MEMBERS"
NONE = -1
# The sender is no member of a group that has members; the group is not empty; it reads the topic.
_MEMBERS = tuple(CODES[name] for name in ("UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP", "GROUP_SUBSCRIBED_TO_TOPIC"))
_NO_GROUP = CODES["GROUP_ID_NOT_FOUND"]


class GroupChanges:
    """Reads and changes one group's offsets; `properties` are Java's client properties of an administrator.

    All methods raise FailedPrecondition (HAS_MEMBERS) while the group has members, Unavailable when its coordinator
    does not answer or refuses.
    """

    def __init__(self, properties: Mapping[str, str], group: str, *, client_id: str) -> None:
        self._properties = properties
        self._group = group
        self._client_id = client_id

    async def offsets(self) -> dict[TopicPart, int]:
        """Returns the committed offsets; none for a missing group."""
        return {where: entry.offset for where, entry in (await self.committed()).items() if entry.offset >= 0}

    async def commit(self, offsets: Mapping[TopicPart, int], note: str = "") -> None:
        """Commits these offsets, whatever they were before, each with the note; creates a missing group.

        An offset of NONE reads as no offset, but its note is kept.
        """
        await self.write({where: Committed(offset, note) for where, offset in offsets.items()})

    async def forget(self, partitions: Sequence[TopicPart]) -> None:
        """Deletes the offsets of these partitions; partitions without an offset count as deleted."""
        answer = await self._ask(lambda: delete_offsets(self._group, partitions))
        if answer.error_code != _NO_GROUP:
            self._check(error_codes(answer))

    async def delete(self) -> None:
        """Deletes the group with all its offsets; a missing group counts as deleted."""
        answer = await self._ask(lambda: DeleteGroupsRequest([self._group]))
        self._check(code for code in error_codes(answer) if code != _NO_GROUP)

    async def committed(self) -> dict[TopicPart, Committed]:
        """Returns the committed offsets with their notes; without the partitions that have neither."""
        answer = await self._ask(lambda: fetch_offsets(self._group))
        codes = set(error_codes(answer)) - {0}
        if codes:
            names = ", ".join(sorted(for_code(code).__name__ for code in codes))
            raise Unavailable(f"group {self._group}: the brokers do not report its offsets: {names}")
        return committed(answer)

    async def write(self, offsets: Mapping[TopicPart, Committed]) -> None:
        """Commits these offsets with their notes, all in one request; creates a missing group."""
        answer = await self._ask(lambda: commit_offsets(self._group, offsets))
        self._check(error_codes(answer))

    async def _ask(self, request: Callable[[], Any]) -> Any:
        return await ask_group(
            self._properties, self._group, request, client_id=self._client_id, answer_ms=ANSWER_MS, seconds=SECONDS
        )

    def _check(self, codes: Any) -> None:
        for code in codes:
            if code in _MEMBERS:
                raise FailedPrecondition(f"group {self._group} has members", reason=HAS_MEMBERS)
            if for_code(code) is not NoError:
                raise Unavailable(f"group {self._group}: its offsets cannot be changed: {for_code(code).__name__}")
