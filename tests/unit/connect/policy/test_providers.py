"""Config providers read no file that a policy of their worker does not allow."""

from pathlib import Path

import pytest

from keelman.connect.config.providers import ConfigProviderError, read
from keelman.connect.config.references import references_of
from keelman.connect.policy.providers import providers_of
from keelman.model.errors import InvalidArgument
from keelman.worker.config.typed import checked
from support.worker_properties import OF_A_GROUP

PACKAGE = "org.apache.kafka.common.config.provider"
PROVIDERS = {
    "config.providers": "file,dir,env",
    "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
    "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
}
RULE = "keelman.policy.installation.providers.allowed"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "data"
    inside.mkdir()
    for place in (tmp_path, inside):
        (place / "p.properties").write_text("word=planted\n")
    (inside / "link").symlink_to(tmp_path / "p.properties")
    return tmp_path


def test_files_inside_are_read_and_none_outside(folder: Path) -> None:
    held = {**PROVIDERS, RULE: f"{folder}/data"}
    inside = {"a": f"${{file:{folder}/data/p.properties:word}}", "b": f"${{dir:{folder}/data:p.properties}}"}
    assert len(read(providers_of(held), references_of(inside))) == 2
    for outside in (
        f"${{file:{folder}/p.properties:word}}",
        f"${{file:{folder}/data/../p.properties:word}}",
        f"${{file:{folder}/data/link:word}}",
        f"${{dir:{folder}:p.properties}}",
        f"${{dir:{folder}/data:link}}",
    ):
        with pytest.raises(ConfigProviderError, match=f"outside of what config providers may read.*{RULE}"):
            read(providers_of(held), references_of({"a": outside}))
        assert read(providers_of(PROVIDERS), references_of({"a": outside})) != {}


def test_a_worker_s_own_references_are_held_too(folder: Path) -> None:
    own = {**OF_A_GROUP, **PROVIDERS, "sasl.jaas.config": f"${{file:{folder}/p.properties:word}}"}
    with pytest.raises(InvalidArgument, match=r"outside of what config providers may read.*sasl\.jaas\.config"):
        checked({**own, RULE: f"{folder}/data"})
