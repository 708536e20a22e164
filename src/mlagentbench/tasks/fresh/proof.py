"""Submissions and scripts by which the fresh tasks prove themselves: the starter with the rule, and with more of the same."""

from __future__ import annotations

from collections.abc import Mapping

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.fresh.grade import TABLE
from mlagentbench.tasks.fresh.world import FAMILIES

oracle = TABLE.oracle

FIND = '''
def rule():
    """The name and the text of the document that states the station's rule."""
    station = re.search(r"the station (\\w+)", Path("data/about.md").read_text())[1]
    for path in sorted(Path("documents").iterdir()):
        if f"rule at {station}." in path.read_text():
            return path.name, path.read_text()


def hidden(rows):
    """What the rule says of each case."""
    name, text = rule()
    Path("document.txt").write_text(name + "\\n")
    weights = {column: int(weight) for column, weight in re.findall(r"`(\\w+)` times (\\d+)", text)}
    power, prime, last = map(int, re.findall(r"(?:power of|division by) (\\d+)", text))
'''
CODE = {
    "table": """
    codes = [pow(sum(int(row[column]) * weight for column, weight in weights.items()), power, prime) % last for row in rows]
    return np.eye(last)[codes]
""",
    "text": """
    letters = {letter: int(weight) for letter, weight in re.findall(r"\\b(\\w) (\\d+)", text.split("numbers:")[1].split(".")[0])}

    def worth(word):
        return (0, 1, -1)[pow(sum(place * letters[letter] for place, letter in enumerate(word, 1)), power, prime) % last]

    return np.array([[sum(map(worth, row["text"].split()))] for row in rows])
""",
    "graph": """
    charge = {row["id"]: float(row["charge"]) for row in rows}
    sums = dict.fromkeys(charge, 0.0)
    for edge in read("edges"):
        if pow(sum(int(edge[column]) * weight for column, weight in weights.items()), power, prime) % last == 0:
            sums[edge["source"]] += charge[edge["target"]]
    return np.array([[each] for each in sums.values()])
""",
}


def solution(*, family: int) -> Files:
    """Return a starter that finds the document, and adds what its rule says of each case to the features."""
    return edited_starter(
        __file__,
        {
            "import csv\n": "import csv\nimport re\n",
            "\n\ndef features(rows)": f"\n{FIND}{CODE[FAMILIES[family]]}\n\ndef features(rows)",
            "found = [numbers(rows)]": "found = [numbers(rows), hidden(rows)]",
        },
    )


def ineffective() -> Files:
    """Return a starter with all products of two features, the general model that needs no document, and a larger penalty for them."""
    products = "    x = np.hstack(found)\n    x = np.hstack((x, *(x * column[:, None] for column in x.T[:12])))\n"
    return edited_starter(__file__, {"PENALTY = 1.0": "PENALTY = 10.0", "    x = np.hstack(found)\n": products})


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one answer for all cases, and the answers of other cases."""
    return {**TABLE.naive(data), "constant": TABLE.changed(data, good="1")}


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse, and a name that is no short text."""
    best = TABLE.files(TABLE.best(data))
    return {
        **TABLE.invalid(data),
        "a long name of a document": Invalid({**best, "document.txt": "note_01.md\n" * 1000}, "document.txt has"),
    }
