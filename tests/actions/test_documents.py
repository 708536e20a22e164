"""Searching documents: what a passage is, and which come first."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlagentbench.actions.documents import PASSAGE, index_of
from mlagentbench.errors import ActionError


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def test_rare_words_count_most_and_equals_keep_their_order(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", a="common common rare", b="common", c="common", d="nothing of it")
    found = index_of(folder).search("COMMON, rare?")
    assert [passage.document for passage, _ in found] == ["a.md", "b.md", "c.md"]
    assert found[1][1] == found[2][1] > 0
    assert index_of(folder).search("the of and") == [] == index_of(folder).search("") == index_of(folder).search("zebra")


def test_a_document_is_cut_where_a_paragraph_ends_and_nothing_is_lost(tmp_path: Path) -> None:
    paragraphs = [f"Paragraph {number}. " + f"word{number} " * 90 for number in range(6)]
    text = "\n\n" + "\n\n".join(paragraphs) + "\n" + "x" * (3 * PASSAGE + 7) + "\nThe end, 7 km.\n"
    index = index_of(write(tmp_path / "a", a=text))
    assert all(0 < len(passage.text) <= PASSAGE + 1 for passage in index.passages)
    assert "".join("".join(passage.text.split()) for passage in index.passages) == "".join(text.split())
    assert all(text.splitlines()[passage.line - 1][:10].startswith(passage.text[:10][:5]) for passage in index.passages)
    assert index.search("word4")[0][0].text.startswith("Paragraph 4")
    assert index.search("7 km")[0][0].text.endswith("The end, 7 km.")


def test_copies_of_the_same_documents_share_an_index_and_others_do_not(tmp_path: Path) -> None:
    one, copy = (write(tmp_path / name, a="a rule", b="a law") for name in ("one", "copy"))
    assert index_of(one) is index_of(copy)
    (copy / "b.md").write_text("a rule of law")
    assert index_of(copy) is not index_of(one) and len(index_of(copy).search("rule")) == 2


def test_links_and_files_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", a="a rule")
    (folder / "picture.png").write_bytes(b"rule\0rule")
    (folder / "latin.txt").write_bytes("rule für Gräser".encode("latin-1"))
    (tmp_path / "secret.md").write_text("rule secret")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    assert {passage.document for passage, _ in index_of(folder).search("rule secret")} == {"a.md", "latin.txt"}
    with pytest.raises(ActionError, match="hold no text"):
        index_of(write(tmp_path / "b", a="\n\n"))
