"""Files of TLS that are read at the start, followed when they change, and refused with their setting when they are
bad."""

import os
import ssl
from pathlib import Path

import pytest

from keelman.model.errors import InvalidArgument
from keelman.rpc.channels import channel, root_certificates
from keelman.rpc.credentials import PemFiles, Pems, RootsFile, Tls
from keelman.rpc.handshake import ask_chain, handshake_problem
from keelman.rpc.server import serve
from keelman.runtime.processes.ports import free_ports
from support.certificates import Authority, Issued


def written(folder: Path, issued: Issued, key: Issued | None = None) -> tuple[Path, Path]:
    files = folder / "c.pem", folder / "c.key"
    for file, text in zip(files, (issued.chain_pem, (key or issued).key_pem), strict=True):
        beside = file.with_suffix(".new")
        beside.write_text(text)
        os.replace(beside, file)
    return files


BAD = {
    "no PEM": ("tls_certificate", lambda c, k: c.write_text("nothing")),
    "another key": ("tls_certificate", lambda c, k: k.write_text(Authority().issue("other").key_pem)),
    "no key": ("tls_certificate", lambda c, k: k.write_text("nothing")),
    "a folder": ("tls_key", lambda c, k: (k.unlink(), k.mkdir())),
    "not there": ("tls_certificate", lambda c, k: c.unlink()),
}


@pytest.mark.parametrize("bad", BAD)
async def test_a_bad_file_is_named_before_anything_listens(tmp_path: Path, bad: str) -> None:
    files = written(tmp_path, Authority().issue("demo", "127.0.0.1"))
    setting, spoil = BAD[bad]
    spoil(*files)
    (port,) = free_ports(1)
    with pytest.raises(InvalidArgument, match=rf"demo\.{setting}: .*\.(pem|key)' is not legal: a .*PEM file"):
        async with serve(port=port, label="demo", tls=Tls(*files)):
            pass


def test_a_ca_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(InvalidArgument, match=r"agent\.state_ca: .*ca\.pem' .*: a PEM file of certificates"):
        root_certificates("agent.state_ca", tmp_path / "ca.pem")
    with pytest.raises(InvalidArgument, match=r"state\.client_ca: .* is not legal: empty without tls_certificate"):
        Tls.of("state", None, None, tmp_path / "ca.pem")


def test_files_that_change_are_read_again_and_bad_ones_passed_over(tmp_path: Path) -> None:
    authority = Authority()
    first, second = authority.issue("one"), authority.issue("two")
    pem_files = PemFiles("demo", *written(tmp_path, first))
    assert pem_files.newest() is pem_files.newest()
    written(tmp_path, second, key=first)
    assert pem_files.newest().chain == first.chain_pem.encode(), "certificate and key are not renewed at one moment"
    written(tmp_path, second)
    assert pem_files.newest().chain == second.chain_pem.encode()


def test_trusted_certificates_that_change_are_read_again_and_bad_ones_passed_over(tmp_path: Path) -> None:
    file, (first, second) = tmp_path / "ca.pem", (Authority().pem, Authority().pem)

    def write(text: str) -> None:
        file.with_suffix(".new").write_text(text)
        os.replace(file.with_suffix(".new"), file)

    with pytest.raises(InvalidArgument, match=r"gateway\.client_ca: .*ca\.pem' .*: a readable PEM file"):
        RootsFile("gateway.client_ca", file)
    write(first)
    roots_file = RootsFile("gateway.client_ca", file)
    for text, read in (("nothing", first), (second, second)):
        write(text)
        assert roots_file.newest() == read.encode()


async def test_a_server_shows_a_certificate_that_came_since(tmp_path: Path) -> None:
    authority, (port,) = Authority(), free_ports(1)
    files = written(tmp_path, authority.issue("one", "127.0.0.1"))
    async with serve(port=port, label="demo", tls=Tls(*files)):
        before = (await ask_chain("127.0.0.1", port))[0]
        written(tmp_path, authority.issue("two", "127.0.0.1"))
        after = (await ask_chain("127.0.0.1", port))[0]
        leaf = (tmp_path / "c.pem").read_text().partition("-----END CERTIFICATE-----")
        assert before != after == ssl.PEM_cert_to_DER_cert("".join(leaf[:2]))
        async with channel(f"127.0.0.1:{port}", root_certificates=authority.pem.encode()) as link:
            await link.channel_ready()


async def test_what_a_client_does_not_trust_is_explained(tmp_path: Path) -> None:
    authority, (port, nobody) = Authority(), free_ports(2)
    address, roots = f"127.0.0.1:{port}", authority.pem.encode()
    async with serve(port=port, label="demo", tls=Tls(*written(tmp_path, authority.issue("one", "127.0.0.1")))):
        assert await handshake_problem(address, Pems(roots=roots)) == ""
        other = Pems(roots=Authority("others").pem.encode())
        assert await handshake_problem(address, other) == "its certificate is of another CA than the trusted one"
        assert "another host: here.internal is not in it" in await handshake_problem(
            address, Pems(roots=roots), "here.internal"
        )
        written(tmp_path, authority.issue("one", "127.0.0.1", ended=True))
        actual_handshake_problem = await handshake_problem(address, Pems(roots=roots))
        assert (
            actual_handshake_problem
            == "its certificate has expired, by the clock of this host: check the clocks of both"
        )
    assert await handshake_problem(f"127.0.0.1:{nobody}", Pems(roots=roots)) == "", "this has another message"
    async with serve(port=nobody, label="demo"):
        assert await handshake_problem(f"127.0.0.1:{nobody}", Pems(roots=roots)) != ""
