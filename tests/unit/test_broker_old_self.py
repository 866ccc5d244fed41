"""Which broker's old self has to be given up, and with which properties."""

from pathlib import Path

from keelman.broker.old_self import controller_properties, has_run
from keelman.broker.properties import server_properties
from keelman.broker.settings import Settings


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
    assert (whole["controlled.shutdown.enable"], many["controlled.shutdown.enable"]) == ("false", "true")


def test_the_controller_is_the_same_server_without_its_broker(tmp_path):
    whole = server_properties(Settings(home=tmp_path, port=9000, controller_port=9001))
    alone = controller_properties(whole)
    assert alone["process.roles"] == "controller"
    assert alone["listeners"] == "CONTROLLER://127.0.0.1:9001"
    assert not {"advertised.listeners", "inter.broker.listener.name"} & alone.keys()
    for key in ("node.id", "log.dirs", "controller.quorum.voters", "controller.listener.names"):
        assert alone[key] == whole[key]
