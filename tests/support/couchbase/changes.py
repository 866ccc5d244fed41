"""Changes of a bucket while clients follow it, or before they come."""

from support.couchbase.server import CouchbaseServer

INVENTORY = "inventory"


def everything(server: CouchbaseServer) -> None:
    """Each kind of change."""
    server.create_scope(INVENTORY)
    server.create_collection(INVENTORY, "airline")
    for n in range(20):
        server.put(f"doc-{n}", {"n": n}, snappy=n % 3 == 0)
        server.put(f"air-{n}", {"n": n}, scope=INVENTORY, collection="airline", expiry=1_900_000_000)
    server.put("bytes", b"\x00\xff no JSON")
    server.delete("doc-3")
    server.expire("doc-4")


def durable(server: CouchbaseServer) -> None:
    """Synchronous writes that are committed, aborted and not decided."""
    for n in range(4):
        server.put_durably(f"committed-{n}", {"n": n})
        server.put_durably(f"aborted-{n}", {"n": n}, commits=False)
    server.put_durably("prepared", {}, commits=None)


def attributes(server: CouchbaseServer) -> None:
    """Extended attributes, compressed and not, for clients that request them."""
    for n in range(4):
        server.put(f"doc-{n}", {"n": n}, xattrs={"rev": n}, snappy=n % 2 == 0)


def dropped(server: CouchbaseServer) -> None:
    """Collections and a scope that are created, dropped and created again, alone and several at once."""
    server.create_scope(INVENTORY)
    server.create_collection(INVENTORY, "airline", "hotel", "route")
    for collection in ("airline", "hotel", "route"):
        server.put(f"first-{collection}", {"n": 1}, scope=INVENTORY, collection=collection)
    server.drop_collection(INVENTORY, "airline")
    server.create_collection(INVENTORY, "airline")
    server.put("second-airline", {"n": 2}, scope=INVENTORY, collection="airline")
    server.create_scope("old")
    server.create_collection("old", "one", "two")
    server.put("gone", {"n": 3}, scope="old", collection="one")
    server.drop_scope("old")
    server.put("last", {"n": 4})


def purged(server: CouchbaseServer) -> None:
    """Deletions that have been purged."""
    for n in range(8):
        server.put(f"doc-{n}", {"n": n}, vbucket=1)
    for n in range(4):
        server.delete(f"doc-{n}", vbucket=1)
    server.put("last", {}, vbucket=1)
    server.purge(1)


def much(server: CouchbaseServer) -> None:
    """More than a window of 1 MiB: nothing more comes unless the client acknowledges what it received."""
    for n in range(60):
        server.put(f"large-{n}", {"pad": "x" * 50_000})


def moved(server: CouchbaseServer) -> None:
    """A rebalance between two nodes, and connections that are cut."""
    for vbucket in range(4):
        server.move(vbucket, 1 - server.vbuckets[vbucket].node)
        server.put(f"moved-{vbucket}", {}, vbucket=vbucket)
    server.cut()
    for n in range(8):
        server.put(f"after-{n}", {"n": n}, vbucket=n)


def vanished(server: CouchbaseServer) -> None:
    """A node that goes and comes back, with changes meanwhile."""
    server.kill(1)
    for n in range(16):
        server.put(f"meanwhile-{n}", {"n": n}, vbucket=n % 8)
    server.revive(1)


def ended(server: CouchbaseServer) -> None:
    """Streams that the server ends for transient reasons."""
    for reason in (2, 3, 4):
        server.end_streams(reason)
        for n in range(8):
            server.put(f"behind-{reason}-{n}", {"n": n}, vbucket=n)
