"""The leader's writer against a real broker: the end of a writer that is given up."""

import asyncio
import gc
import weakref

import pytest

from keelman.kafka.writer import FencingWriter
from support.eventually import eventually
from support.kafka.topics import create_topic

pytestmark = pytest.mark.component


async def test_a_writer_given_up_while_it_is_fenced_leaves_nothing_for_the_log(bootstrap: str, name: str) -> None:
    """As a worker that is stopped while another already leads: the library's pending calls fail without a log."""
    create_topic(bootstrap, name)
    unheard: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context["message"]))
    for turns in range(4):
        former, latter = (
            FencingWriter({"bootstrap.servers": bootstrap}, client_id=client, transactional_id=name) for client in "ab"
        )
        await former.write(name, [(b"k", b"v")])
        assert former._producer is not None
        batches = weakref.ref(former._producer._sender)
        await latter.claim()
        writing = asyncio.ensure_future(former.write(name, [(b"k", b"1"), (b"k", b"2"), (b"l", b"3")]))
        for turn in range(turns):
            await asyncio.sleep(0)
            if turn == turns - 1:
                writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await former.close()
        await latter.close()
        del former, writing
        await eventually(lambda b=batches: gc.collect() >= 0 and b() is None, what="it is gone")
    asyncio.get_running_loop().set_exception_handler(None)
    assert unheard == []
