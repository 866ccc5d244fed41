"""What happens in a bucket while clients follow it."""

from support.couchbase.server import CouchbaseServer


def everything(server: CouchbaseServer) -> None:
    """Each kind of change."""
    server.create_scope("inventory")
    server.create_collection("inventory", "airline")
    for n in range(20):
        server.put(f"doc-{n}", {"n": n}, snappy=n % 3 == 0)
        server.put(f"air-{n}", {"n": n}, scope="inventory", collection="airline", expiry=1_900_000_000)
    server.put("bytes", b"\x00\xff no JSON")
    server.delete("doc-3")
    server.expire("doc-4")
