"""Where the entries of a wheel are once it is installed."""

import pytest

from keelman.model.plugins.wheel_paths import installed_path


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ("acme/source.py", "acme/source.py"),
        ("acme-1.dist-info/METADATA", "acme-1.dist-info/METADATA"),
        ("acme-1.data/purelib/acme/source.py", "acme/source.py"),
        ("acme-1.data/platlib/acme.so", "acme.so"),
    ],
)
def test_what_is_imported(entry: str, path: str) -> None:
    assert str(installed_path(entry)) == path


@pytest.mark.parametrize("entry", ["acme-1.data/scripts/acme", "acme-1.data/purelib", "acme-1.data/data/etc/x", ""])
def test_what_is_not(entry: str) -> None:
    assert installed_path(entry) is None
