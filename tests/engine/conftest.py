"""A provider on loopback, which the clients of both wires are pointed to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.server import Provider, provider


@pytest.fixture(scope="session")
def one_server() -> Iterator[Provider]:
    """One for all tests, since the clients are kept from one model of a name to the next."""
    with provider() as server:
        yield server


@pytest.fixture
def server(one_server: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    """The provider, well-behaved."""
    one_server.behave()
    monkeypatch.setenv("OPENAI_BASE_URL", f"{one_server.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", one_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy")
    return one_server
