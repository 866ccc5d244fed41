"""Which former registration of a broker must be fenced, and with which properties."""

from pathlib import Path

from keelman.broker.old_self import MAX_IDLE, controller_properties, has_run, is_over
from keelman.broker.properties import server_properties
from keelman.broker.settings import Settings

# Batches of a metadata log that Kafka 4.3.0 wrote: a no-op record; broker 0 unfenced at its start; broker 0 fenced by
# its controller, after the partition changes that this causes.
IDLE = bytes.fromhex(
    "00000000000000f70000003c0000000402129ee1ba000000000000000001a202ca302d000001a202ca302dffffffffffffffffffffffffffff"
    "000000011400000001080114000000"
)
UNFENCED = bytes.fromhex(
    "00000000000000170000004b00000001025c5bff2b000000000000000001a202c847c5000001a202c847c5ffffffffffffffffffffffffffff"
    "00000001320000000126011100000000000000000000000011010001ff00"
)
FENCED = bytes.fromhex(
    "00000000000000f00000018f0000000402cd6eb271000000000006000001a202ca2f9f000001a202ca2f9fffffffffffffffffffffffffffff"
    "000000076a00000a015e0105020000000083b4607882bd4f2d81164a76e5ec4564040001010104ffffffff060502000000000705020000000000"
    "3200000c01260111000000000000000000000000110100010100"
)


def ran(data: Path) -> Path:
    (data / "__cluster_metadata-0").mkdir(parents=True)
    (data / "__cluster_metadata-0" / "00000000000000000000.log").touch()
    (data / "meta.properties").touch()
    return data


def test_a_folder_that_was_only_formatted_has_no_old_self(tmp_path):
    (tmp_path / "meta.properties").touch()
    assert not has_run(tmp_path)
    assert has_run(ran(tmp_path / "data"))


def test_a_broker_alone_is_never_given_up_but_its_old_self_soon_is(tmp_path):
    whole = server_properties(Settings(home=tmp_path))
    assert int(whole["broker.session.timeout.ms"]) > 7 * 24 * 3600 * 1000
    assert int(controller_properties(whole)["broker.session.timeout.ms"]) < 1000
    voters = tuple(f"{n}@host{n}:9093" for n in (1, 2, 3))
    many = server_properties(Settings(home=tmp_path, voters=voters))
    assert int(many["broker.session.timeout.ms"]) < 10_000
    idle = "metadata.max.idle.interval.ms"
    assert (whole[idle], idle in many) == ("5000", False)
    assert (whole["controlled.shutdown.enable"], many["controlled.shutdown.enable"]) == ("false", "true")


def test_brokers_beside_the_only_controller_keep_their_sessions_while_it_is_without_its_own(tmp_path):
    whole = server_properties(Settings(home=tmp_path, replicas=2))
    fencing = controller_properties(whole)
    assert int(fencing["broker.session.timeout.ms"]) >= 3 * int(whole["broker.heartbeat.interval.ms"])
    assert int(fencing["broker.session.timeout.ms"]) < int(whole["broker.session.timeout.ms"])


def test_the_controller_is_the_same_server_without_its_broker(tmp_path):
    whole = server_properties(Settings(home=tmp_path, port=9000, controller_port=9001))
    alone = controller_properties(whole)
    assert alone["process.roles"] == "controller"
    assert alone["listeners"] == "CONTROLLER://127.0.0.1:9001"
    assert not {"advertised.listeners", "inter.broker.listener.name"} & alone.keys()
    for key in ("node.id", "log.dirs", "controller.quorum.voters", "controller.listener.names"):
        assert alone[key] == whole[key]


def test_the_old_self_is_over_when_that_is_written_and_not_before():
    assert is_over(b"", 0) is None
    assert is_over(UNFENCED + 9 * IDLE, 0) is None, "what grows behind the controller's word need not be the fence"
    assert is_over(IDLE + FENCED[:-8], 0) is None, "half a batch"
    assert is_over(IDLE + FENCED + IDLE, 0) is True
    assert is_over(IDLE + FENCED + IDLE, 256) is None, "another broker's"


def test_a_controller_that_finds_nothing_to_fence_is_not_waited_for_without_end():
    assert is_over(UNFENCED + (MAX_IDLE - 1) * IDLE, 0) is None
    assert is_over(UNFENCED + MAX_IDLE * IDLE, 0) is False
    assert is_over(MAX_IDLE * IDLE + FENCED, 0) is True
