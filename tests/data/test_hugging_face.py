"""Files of Hugging Face come by plain HTTPS, to the paths that they have there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from mlagentbench.data import fetch
from mlagentbench.errors import TaskError
from tests.mirror import Mirror, Redirect, Status, serve
from tests.tasks.tiny import DATA, make_task

CONTENT = bytes(range(256)) * 100


def test_files_of_hugging_face_lie_by_their_paths(mirror: Mirror) -> None:
    base = "https://huggingface.co/datasets/stanfordnlp/imdb/resolve/abc123"
    mirror.add(f"{base}/plain_text/train.parquet", CONTENT)
    mirror.add(f"{base}/README.md", b"read me")
    folder = fetch.hugging_face("stanfordnlp/imdb", ["plain_text/train.parquet", "README.md"], revision="abc123")
    assert (folder / "plain_text" / "train.parquet").read_bytes() == CONTENT
    assert (folder / "README.md").read_bytes() == b"read me"
    again = fetch.hugging_face("stanfordnlp/imdb", ["README.md"], revision="abc123")
    assert again == folder
    assert len(mirror.requests) == 2


def test_a_models_files_are_checked_by_path_or_name(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add("https://huggingface.co/distilbert/base/resolve/main/model.bin", b"other")
    checksum = hashlib.sha256(CONTENT).hexdigest()
    task = make_task(tmp_path, more=f'{DATA}[data.checksums]\n"model.bin" = "sha256:{checksum}"\n')
    with fetch.fetching(task.spec, tmp_path / "cache"), pytest.raises(TaskError, match="not the file"):
        fetch.hugging_face("distilbert/base", ["model.bin"], kind="model", revision="main")


def test_a_token_goes_to_hugging_face_and_no_further(mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    storage, server = serve(tmp_path / "storage")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HF_ENDPOINT", "https://hf.example.org")
    url = "https://hf.example.org/datasets/a/b/resolve/main/x.bin"
    mirror.fail(url, Redirect(f"{storage.url}/x.bin"))
    storage.add("https://x.bin", CONTENT)
    fetch.hugging_face("a/b", ["x.bin"], revision="main")
    assert mirror.requests[0].headers["authorization"] == "Bearer hf_secret"
    assert "authorization" not in storage.requests[0].headers
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("status", [401, 403])
def test_terms_of_hugging_face_that_are_not_accepted_are_named(mirror: Mirror, status: int) -> None:
    mirror.fail("https://huggingface.co/meta/llama/resolve/main/x.bin", Status(status))
    with pytest.raises(TaskError, match=r"accept its terms at https://huggingface.co/meta/llama, and set HF_TOKEN"):
        fetch.hugging_face("meta/llama", ["x.bin"], kind="model", revision="main")


def test_a_path_that_leaves_the_repository_is_refused(mirror: Mirror) -> None:
    with pytest.raises(TaskError, match="is no path in a/b"):
        fetch.hugging_face("a/b", ["../x"], revision="main")
