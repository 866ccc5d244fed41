"""A plugin's file that the command line refuses without a call to the gateway."""

from pathlib import Path

import pytest

from keelman.cli.client.plugins import upload
from keelman.cli.commands.create import Creation, check_options
from keelman.cli.kinds import PLUGINS
from keelman.model.errors import InvalidArgument


async def test_an_empty_file_is_refused_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "acme-1.jar"
    file.touch()
    with pytest.raises(InvalidArgument, match=r"FILE: '.*acme-1\.jar' is not legal: a file that is not empty"):
        await upload(None, file, None)  # type: ignore[arg-type]


def test_a_plugin_is_not_started() -> None:
    with pytest.raises(InvalidArgument, match="only for worker-clusters and definitions; a plugin is not started"):
        check_options(PLUGINS, Creation(start=True))
