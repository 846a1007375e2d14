"""`relet gateway`: the file of tokens, HTTPS, and addresses that a proxy passes on."""

from __future__ import annotations

import datetime
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from relet import App, Worker
from relet._web.security import MAX_FAILURES
from tests import forks
from tests.gateway.conformance import define_tasks
from tests.gateway.protocol import Refused, Speaker
from tests.gateway.serving import SCOPED, TOKEN, free_port
from tests.gateway.test_gateway import NO_DATABASE, working
from tests.gateway.workers import WITHIN
from tests.plugin.command_line import CommandLine
from tests.waiting import Pause

TOKENS = f"""
[everything]
token = "{TOKEN}"

[acme]
token = "{SCOPED}"
queues = ["billing"]
"""


@contextmanager
def gateway(folder: Path, url: str, *options: str, token: str = "") -> Iterator[int]:
    """The port of `relet gateway`, which listens."""
    port = free_port()
    words = [sys.executable, "-m", "relet", "gateway", url, "--port", str(port), *options]
    log = folder / "gateway.log"
    env = {**os.environ, "RELET_GATEWAY_TOKEN": token}
    with log.open("wb") as file:
        process = forks.Popen(words, cwd=folder, env=env, stdout=file, stderr=file)
    try:
        give_up, pause = time.monotonic() + WITHIN, Pause()
        while "Started server process" not in log.read_text():
            assert time.monotonic() < give_up, log.read_text()
            assert process.poll() is None, log.read_text()
            pause()
        yield port
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def billing(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.client.migrate()
    define_tasks(app)
    yield app
    app.close()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for this machine that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jobs.example.com")])
    now = datetime.datetime.now(datetime.UTC)
    hosts = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(hosts, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, secret = tmp_path / "cert.pem", tmp_path / "cert.key"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    traditional, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, traditional, plain))
    return pem, secret


def test_workers_reach_a_gateway_over_https_with_tokens_of_a_file(
    tmp_path: Path, billing: App, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokens.toml").write_text(TOKENS)
    pem, key = certificate
    work = billing.tasks["work"]
    jobs = [work.using(queue=queue).enqueue(1) for queue in ("billing", "mail")]
    options = ("--certificate", str(pem), "--key", str(key), "--tokens", str(tmp_path / "tokens.toml"))
    with gateway(tmp_path, str(billing.client.where), *options) as port:
        url = f"https://127.0.0.1:{port}"
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))  # as an operator with a CA of the company's does
        with working(worker_of(url, SCOPED)):
            assert billing.client.result(jobs[0], timeout=WITHIN) == 1
        assert billing.client.get(jobs[1]).state == "queued"  # type: ignore[union-attr]
        with working(worker_of(url, TOKEN)):
            assert billing.client.result(jobs[1], timeout=WITHIN) == 1
    assert not [secret for secret in (TOKEN, SCOPED) if secret in (tmp_path / "gateway.log").read_text()]


def worker_of(url: str, token: str) -> Worker:
    app = App(NO_DATABASE)
    define_tasks(app)
    return Worker(app, gateway=url, gateway_token=token, queues=["billing"] if token == SCOPED else None)


def test_wrong_tokens_are_counted_by_the_address_that_a_trusted_proxy_passes_on(tmp_path: Path, billing: App) -> None:
    def guess(port: int, number: int) -> int:
        headers = {"X-Forwarded-For": f"203.0.113.{number}"}
        with pytest.raises(Refused) as refused:
            Speaker(f"http://127.0.0.1:{port}", f"a wrong one {number}", headers=headers).ask("hello")
        return refused.value.status

    url = str(billing.client.where)
    with gateway(tmp_path, url, token=TOKEN) as port:
        guesses = [guess(port, number) for number in range(MAX_FAILURES + 1)]
        assert guesses == [401] * MAX_FAILURES + [429], "without --proxy the header counts for nothing"
    with gateway(tmp_path, url, "--proxy", "127.0.0.0/8", token=TOKEN) as port:
        assert {guess(port, number) for number in range(MAX_FAILURES + 1)} == {401}


def test_a_bad_file_of_tokens_is_refused_without_a_token_in_the_error(
    typed: CommandLine, tmp_path: Path, billing: App
) -> None:
    url, file = str(billing.client.where), tmp_path / "tokens.toml"

    def refusal(text: str) -> str:
        file.write_text(text)
        error = typed.refusal(tmp_path, "gateway", url, "--tokens", str(file))
        assert TOKEN not in error
        return error

    assert "is not TOML" in refusal(f"[acme\ntoken = {TOKEN}")
    assert "[acme] has no token" in refusal('[acme]\nqueues = ["billing"]')
    assert "queues must be a list of names" in refusal(f'[acme]\ntoken = "{TOKEN}"\nqueues = "billing"')
    assert "queues must be a list of names" in refusal(f'[acme]\ntoken = "{TOKEN}"\nqueues = []')
    assert "16" in refusal('[acme]\ntoken = "short"')
    assert "Cannot read" in typed.refusal(tmp_path, "gateway", url, "--tokens", str(tmp_path / "absent.toml"))
    assert "--proxy must be an address" in typed.refusal(tmp_path, "gateway", url, "--proxy", "nonsense")
