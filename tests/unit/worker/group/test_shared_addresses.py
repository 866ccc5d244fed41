"""Two live workers at one address are distinguished from a killed worker and its successor."""

from __future__ import annotations

from keelman.kafka.groups.protocol import DescribedMember
from keelman.worker.group.shared_addresses import SharedAddresses

URL, OTHER = "http://w:1/", "http://w:2/"
SESSION = 6.0


class Group:
    """The members of a group, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked = 0
        self.members = {URL: [DescribedMember("a", "a", "/10.0.0.1", b""), DescribedMember("b", "b", "/10.0.0.2", b"")]}
        self.shared = SharedAddresses(self.present, session=SESSION, clock=lambda: self.now)

    async def present(self) -> dict[str, list[DescribedMember]]:
        self.asked += 1
        return self.members

    async def later(self, seconds: float) -> str:
        """Returns the problem with the address so many seconds later."""
        self.now += seconds
        await self.shared.look()
        return self.shared.problem(URL)


async def test_both_are_named_once_a_session_is_over() -> None:
    group = Group()
    group.shared.suspect([URL])
    assert await group.later(SESSION + 1) == ""
    group.shared.suspect([URL])  # another round does not restart the time
    problem = await group.later(0.1)
    assert "2 live workers of this group advertise http://w:1/ (a on 10.0.0.1, b on 10.0.0.2)" in problem
    assert "set rest.advertised.host.name or rest.advertised.port" in problem
    assert group.shared.problem(OTHER) == ""
    assert await group.later(SESSION) == problem
    assert group.asked == 1, "it is known"
    group.shared.suspect([])
    assert group.shared.problem(URL) == ""


async def test_who_is_dead_has_gone_by_then() -> None:
    group = Group()
    group.shared.suspect([URL])
    del group.members[URL][0]
    assert await group.later(SESSION + 2) == ""
    assert await group.later(SESSION + 2) == ""
    assert group.asked == 1
    group.shared.suspect([])
    assert await group.later(SESSION + 2) == ""


async def test_what_nobody_knows_now_is_asked_again_but_not_all_the_time() -> None:
    group = Group()
    group.shared.suspect([URL])
    members, group.members = group.members, {}
    assert await group.later(SESSION + 2) == ""
    for _ in range(10):
        assert await group.later(0.01) == ""
    assert group.asked == 1
    group.members = members
    assert "advertise http://w:1/" in await group.later(1)


async def test_where_nobody_is_suspected_nobody_is_asked() -> None:
    group = Group()
    group.shared.suspect([])
    assert await group.later(1000) == ""
    assert group.asked == 0
