"""Answers on a kept-alive connection do not wait for the client's TCP acknowledgements."""

import time

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keelman.runtime.http.server import serve_http

RECEIPT_SECONDS = 0.04  # how long Linux delays an acknowledgement


async def test_answers_on_a_kept_connection_come_at_once() -> None:
    async def answer(request: Request) -> Response:
        return Response(b"x" * 200)

    async with (
        serve_http(Starlette(routes=[Route("/", answer)]), host="127.0.0.1", port=0, label="test") as port,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        await client.get(f"http://127.0.0.1:{port}/")
        for _ in range(100):  # one quick answer is enough on a slow machine: with the fault every answer is late
            begun = time.perf_counter()
            await client.get(f"http://127.0.0.1:{port}/")
            if time.perf_counter() - begun < RECEIPT_SECONDS * 0.75:
                return
        raise AssertionError("every answer took as long as a receipt")
