"""The keys of buckets: for one server alone, kept for the next agent, and removed once they are no longer assigned."""

from __future__ import annotations

from pathlib import Path

from keelman.agent.shipping.bucket_keys import BucketKeys, Keys
from keelman.api.node.v1 import session_service_pb2 as pb

SERVER = "http://s3.example:9000"


def told(secret: str = "pepper-and-salt") -> pb.NodeSecrets:
    return pb.NodeSecrets(bucket_keys=pb.BucketKeys(buckets=SERVER, access_key_id="id", secret_access_key=secret))


def test_they_are_of_one_server_and_kept_for_the_next_agent(tmp_path: Path) -> None:
    file = tmp_path / "agent" / "bucket-keys.json"
    keys = BucketKeys(file)
    assert keys.of(SERVER) is None
    keys.take(told())
    assert keys.of(SERVER) == Keys(SERVER, "id", "pepper-and-salt")
    assert keys.of("http://other.example:9000") is None
    assert file.stat().st_mode & 0o777 == 0o600
    assert "pepper-and-salt" not in repr(keys.of(SERVER))
    assert BucketKeys(file).of(SERVER) == keys.of(SERVER)
    keys.take(told("a-later-secret"))
    assert BucketKeys(file).of(SERVER) == Keys(SERVER, "id", "a-later-secret")
    keys.take(pb.NodeSecrets())
    assert keys.of(SERVER) is None
    assert not file.exists()


def test_a_file_that_cannot_be_read_counts_for_nothing(tmp_path: Path) -> None:
    (file := tmp_path / "keys.json").write_text("{")
    assert BucketKeys(file).of(SERVER) is None
