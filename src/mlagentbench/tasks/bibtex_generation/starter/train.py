"""Fill in the missing citations of passages, and write their bibliography."""

import json

from search import search

FOUND = 20  # how many papers are asked for at once


def nearest(sentence):
    """Of the papers whose titles share most words with a sentence, the first one from a year that it names, or else the first."""
    found = search(sentence, FOUND)
    return next((paper for paper in found if str(paper["year"]) in sentence), found[0] if found else None)


def cite(passage):
    r"""Put a citation, \cite{key}, for each [?] of a passage.

    Returns:
        The passage, and the papers that it cites, by their keys.
    """
    *sentences, text = passage.split("[?]")
    papers = {}
    for sentence in reversed(sentences):
        paper = nearest(sentence)
        if paper is None:
            text = f"{sentence}[?]{text}"
        else:
            papers[paper["id"]] = paper
            text = f"{sentence}\\cite{{{paper['id']}}}{text}"
    return text, papers


def bibliography(papers):
    """Write a BibTeX entry for each paper; `papers` holds them by their keys."""
    entry = "@article{{{0},\n  author = {{{1}}},\n  title = {{{2}}},\n  year = {{{3}}}\n}}\n"
    return "".join(entry.format(key, " and ".join(paper["authors"]), paper["title"], paper["year"]) for key, paper in papers.items())


def f1(found, missing):
    """The harmonic mean of precision and recall; 0 where nothing is found."""
    return 2 * len(found & missing) / (len(found) + len(missing))


def read(name):
    """Read one of the library's files."""
    with open(f"library/{name}.json", encoding="utf-8") as file:
        return json.load(file)


def main():
    """Score the tool on the examples, then work on the passages."""
    scores = []
    for example in read("examples"):
        _, papers = cite(example["text"])
        scores.append(f1({paper["id"] for paper in papers.values()}, set(example["cited"])))
    print(f"F1 on the examples: {sum(scores) / len(scores):.4f}")

    texts, references = {}, {}
    for passage in read("passages"):
        texts[passage["id"]], papers = cite(passage["text"])
        references.update(papers)
    with open("cited.json", "w", encoding="utf-8") as file:
        json.dump(texts, file, indent=2)
    with open("references.bib", "w", encoding="utf-8") as file:
        file.write(bibliography(references))


if __name__ == "__main__":
    main()
