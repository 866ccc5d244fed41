"""Faults of the broker's certificate, as its clients see them: another certificate, of the same CA or of another."""

from __future__ import annotations

import asyncio

from chaos.chaos_links import Strike
from chaos.chaos_scene import Scene
from chaos.chaos_system import LISTENER
from support.brokers.secure_broker import SESSION_SECONDS
from support.certificates import Authority

NAME, HOST = "broker", "127.0.0.1"


async def certificate_changed(scene: Scene) -> None:
    """The broker shows an expired certificate, for longer than a session; then a valid one with other keys.

    The test restarts by hand the tasks that failed meanwhile.
    """
    secure = scene.system.secure
    for ended in (True, False):
        await scene.moment()
        scene.mark()
        await secure.show(LISTENER, secure.authority.issue(NAME, HOST, ended=ended))
        await asyncio.sleep(2 * SESSION_SECONDS)
    await scene.start_failed()


def authority_changed(*, overlapping: bool) -> Strike:
    """The broker's certificate becomes one of another CA, all connections break, and the truststore is replaced.

    `overlapping`: a truststore with both CAs comes first, and nothing fails. Otherwise a truststore with the new CA
    alone comes when the broker has been refusing the clients for some time; tasks that failed meanwhile are restarted
    by hand.
    """

    async def do(scene: Scene) -> None:
        secure, new = scene.system.secure, Authority("others")
        trusted = (new, secure.authority) if overlapping else (new,)
        written = trusted[0].write_trust(secure.home / "next-trust.p12", *trusted[1:])
        await scene.moment()
        scene.mark()
        if overlapping:
            written.replace(secure.trust)
            await scene.moment()
        await secure.show(LISTENER, new.issue(NAME, HOST))
        scene.system.secure_link.reset()
        if not overlapping:
            await asyncio.sleep(SESSION_SECONDS)
            written.replace(secure.trust)
            await asyncio.sleep(SESSION_SECONDS)
            await scene.start_failed()
        await scene.recovered()
        await scene.moment()

    return do
