"""Prepare CIFAR-100 as arrays: the published archive, or drawn pictures of its shape."""

from __future__ import annotations

import tempfile
from pathlib import Path

from mlagentbench.data import fetch
from mlagentbench.tasks.cifar10.pictures import Difficulty, draw, read_records, write

ARCHIVE = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"
FOLDER = "cifar-100-binary"
_NAMES = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle caterpillar cattle
chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house
kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew
skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout
tulip turtle wardrobe whale willow_tree wolf woman worm
"""
NAMES = _NAMES.split()
MINI_TRAIN, MINI_TEST = 2400, 2000
MINI = Difficulty(layout=1.0, wave=0.3, noise=0.6, shift=5)


def full(public: Path, private: Path) -> None:
    """Fetch the 50,000 training and 10,000 test pictures of Krizhevsky (2009), with their fine labels."""
    with tempfile.TemporaryDirectory() as scratch:
        fetch.unpack(fetch.download(ARCHIVE), Path(scratch), keep=[f"{FOLDER}/*.bin", f"{FOLDER}/fine_label_names.txt"])
        folder = Path(scratch) / FOLDER
        train, test = (read_records(folder / f"{part}.bin", label_bytes=2) for part in ("train", "test"))
        names = (folder / "fine_label_names.txt").read_text(encoding="utf-8").split()
    write(train, test, names, public, private)


def mini(public: Path, private: Path, seed: int) -> None:
    """Draw pictures of a hundred classes."""
    train, test = draw(MINI_TRAIN, MINI_TEST, len(NAMES), MINI, seed)
    write(train, test, NAMES, public, private)
