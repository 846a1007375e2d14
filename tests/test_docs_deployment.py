"""The files of the page on deployment: parsed by the programs that read them, and used where these are installed."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from relet._cli.main import parse
from tests.pages import DOCS, blocks
from tests.test_cli_web import free_port, serving
from tests.worker.programs import until

PAGE = DOCS / "guides" / "deployment.md"
TOKEN = "a-secret-of-at-least-16-characters"
LIST = re.compile(r'\["relet".*?\]', re.S)


def fences(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


def units() -> dict[str, configparser.ConfigParser]:
    found = {}
    for text in fences("ini"):
        parser = configparser.ConfigParser(interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read_string(text)
        found[Path(text.splitlines()[0].removeprefix("# ")).name] = parser
    return found


def manifests() -> list[dict[str, Any]]:
    (text,) = fences("yaml")
    return list(yaml.safe_load_all(text))


def command_lines() -> list[list[str]]:
    starts = [shlex.split(unit["Service"]["ExecStart"])[1:] for unit in units().values()]
    lists = [json.loads(found)[1:] for text in fences("yaml") + fences("dockerfile") for found in LIST.findall(text)]
    inline = [shlex.split(found) for found in re.findall(r"`relet (.+?)`", PAGE.read_text()) if ":app" in found]
    return starts + lists + inline


def shutdown_timeout(arguments: list[str]) -> float:
    return float(arguments[arguments.index("--shutdown-timeout") + 1])


def test_every_command_of_the_files_is_accepted() -> None:
    lines = command_lines()
    assert {line[0] for line in lines} == {"worker", "web", "migrate", "check"}
    for line in lines:
        parse(line)


def test_supervisors_wait_for_longer_than_the_shutdown_timeout() -> None:
    service = units()["shop-worker.service"]["Service"]
    assert float(service["TimeoutStopSec"]) >= shutdown_timeout(shlex.split(service["ExecStart"])) + 5
    (worker,) = (each for each in manifests() if each["metadata"]["name"] == "shop-worker")
    pod = worker["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= shutdown_timeout(pod["containers"][0]["command"]) + 5


def test_selectors_of_the_manifests_match_their_pods() -> None:
    deployments = [each for each in manifests() if each["kind"] == "Deployment"]
    assert len(deployments) == 2
    for each in deployments:
        assert each["spec"]["selector"]["matchLabels"] == each["spec"]["template"]["metadata"]["labels"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for text in fences("ini"):
        unit = tmp_path / Path(text.splitlines()[0].removeprefix("# ")).name
        unit.write_text(text.replace("/srv/shop/venv/bin/relet", sys.executable).replace("User=shop", "User=root"))
        ran = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=60
        )
        assert unit.name not in ran.stderr, ran.stderr


def certificate(folder: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    pem, key = folder / "cert.pem", folder / "cert.key"
    subject = ["-subj", "/CN=jobs.example.com", "-days", "2"]
    files = ["-keyout", str(key), "-out", str(pem)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
    return pem, key


@contextmanager
def program(*command: str | Path, port: int) -> Iterator[None]:
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        until(lambda: is_open(port) or running.poll() is not None, lambda: f"{command[0]} does not listen", 60)
        assert running.poll() is None, running.stdout and running.stdout.read()
        yield
    finally:
        running.terminate()
        running.communicate()


def is_open(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/", timeout=10)
    except httpx.ConnectError:
        return False
    except httpx.HTTPError:
        return True
    return True


def nginx_settings(folder: Path, site: str) -> Path:
    lines = [f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
    temporary = "\n".join(lines)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}\n{site}\n}}\n"
    )
    return folder / "nginx.conf"


@contextmanager
def behind_nginx(folder: Path, site: str, port: int) -> Iterator[None]:
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(nginx).exists():
        pytest.skip("nginx is not installed")
    with program(nginx, "-e", folder / "error.log", "-c", nginx_settings(folder, site), port=port):
        yield


def sign_in(address: str, host: str) -> httpx.Response:
    with httpx.Client(base_url=address, verify=False, headers={"Host": host}, timeout=30) as browser:  # noqa: S501
        return browser.post("/login", data={"token": TOKEN}, headers={"Origin": f"https://{host}"})


WEB = ("--host-name", "jobs.example.com", "--proxy", "127.0.0.1", "--open-health")


def test_a_sign_in_through_nginx_gets_a_secure_cookie(tmp_path: Path) -> None:
    pem, key = certificate(tmp_path)
    web, port = free_port(), free_port()
    site = fences("nginx")[0].replace("listen 443", f"listen 127.0.0.1:{port}").replace(":8470", f":{web}")
    site = site.replace("/etc/ssl/jobs.example.com.pem", str(pem)).replace("/etc/ssl/jobs.example.com.key", str(key))
    with serving(tmp_path, web, *WEB, RELET_WEB_TOKEN=TOKEN), behind_nginx(tmp_path, site, port):
        until(lambda: is_open(web), lambda: "relet web does not listen", 60)
        answer = sign_in(f"https://127.0.0.1:{port}", "jobs.example.com")
        assert answer.status_code == 303, answer.text
        assert "secure" in answer.headers["set-cookie"].lower()
        other = httpx.get(f"https://127.0.0.1:{port}/health", headers={"Host": "evil.example"}, verify=False)  # noqa: S501
        assert other.status_code == 421


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
def test_a_sign_in_through_caddy_gets_a_secure_cookie(tmp_path: Path) -> None:
    pem, key = certificate(tmp_path)
    web, port = free_port(), free_port()
    site = fences("caddyfile")[0].replace(
        "jobs.example.com {", f"https://jobs.example.com:{port} {{\n    tls {pem} {key}"
    )
    (tmp_path / "Caddyfile").write_text(
        "{\n    admin off\n    auto_https disable_redirects\n}\n" + site.replace(":8470", f":{web}")
    )
    run = ("caddy", "run", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile")
    with serving(tmp_path, web, *WEB, RELET_WEB_TOKEN=TOKEN), program(*run, port=port):
        until(lambda: is_open(web), lambda: "relet web does not listen", 60)
        with httpx.Client(verify=False, timeout=30) as browser:  # noqa: S501
            answer = browser.post(
                f"https://127.0.0.1:{port}/login",
                data={"token": TOKEN},
                headers={"Host": f"jobs.example.com:{port}", "Origin": f"https://jobs.example.com:{port}"},
                extensions={"sni_hostname": "jobs.example.com"},
            )
        assert answer.status_code == 303, answer.text
        assert "secure" in answer.headers["set-cookie"].lower()


def test_links_lead_below_the_path_at_which_nginx_serves(tmp_path: Path) -> None:
    web, port = free_port(), free_port()
    site = f"server {{ listen 127.0.0.1:{port};\n{fences('nginx')[1].replace(':8470', f':{web}')} }}"
    (tmp_path / "shop.py").write_text(next(each.code for each in blocks(PAGE) if each.code.startswith("# shop.py")))
    (words,) = (line for text in fences("sh") for line in text.splitlines() if line.startswith("uvicorn "))
    command = [word.replace("8470", str(web)) for word in shlex.split(words)]
    uvicorn = [sys.executable, "-m", "uvicorn", "--app-dir", str(tmp_path), *command[1:]]
    with program(*uvicorn, port=web), behind_nginx(tmp_path, site, port):
        headers = {"Host": "shop.example.com", "Authorization": "Bearer a-token-of-at-least-16-characters"}
        page = httpx.get(f"http://127.0.0.1:{port}/queue/", headers=headers, timeout=30)
        assert page.status_code == 200, page.text
        links = re.findall(r'href="(/[^"]*)"', page.text)
        assert links
        assert [link for link in links if not link.startswith("/queue/")] == []
