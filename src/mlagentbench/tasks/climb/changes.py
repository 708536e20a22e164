"""The changes that the climbs need, in their order, as edits of the starter."""

from __future__ import annotations

from collections.abc import Iterable

from mlagentbench import Files, edited_starter

LOADER = """\
    ids, counts = read("data/train.csv")
    labelled, digits = read("data/labels.csv")
    digits = digits[np.argsort(labelled)][np.argsort(np.argsort(ids))]
"""
FEATURES = """\
    low, high = counts.min(axis=1, keepdims=True), counts.max(axis=1, keepdims=True)
    return (counts - low) / (high - low)"""
SOFTMAX = '''\
def softmax(z):
    """Probabilities of the digits."""
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def fit('''
VOTE = '''\
def vote(x, digits, rng):
    """The digit that most of 30 networks say."""
    models = [fit(x, digits, rng) for _ in range(30)]
    return lambda x: np.apply_along_axis(lambda votes: np.bincount(votes).argmax(), 0, [model(x) for model in models])


def main('''

CHANGES: dict[str, dict[str, str]] = {
    "loader": {'    _, counts = read("data/train.csv")\n    _, digits = read("data/labels.csv")\n': LOADER},
    "features": {"    return counts / largest": FEATURES},
    "loss": {
        "def fit(": SOFTMAX,
        "target = ((digits - middle) / spread)[:, None]": "target = np.eye(10)[digits]",
        "(output - target[rows])": "(softmax(output) - target[rows])",
        "np.clip(np.round(output[:, 0] * spread + middle), 0, 9).astype(int)": "output.argmax(axis=1)",
    },
    "schedule": {"RATE * 0.5**epoch": "RATE * (1 - epoch / EPOCHS)"},
    "ensemble": {"def main(": VOTE, "predicted = fit(": "predicted = vote("},
}


def changed(names: Iterable[str]) -> Files:
    """Return the starter with the changes of these names."""
    edits = [edit for name in names for edit in CHANGES[name].items()]
    return edited_starter(__file__, dict(edits))
