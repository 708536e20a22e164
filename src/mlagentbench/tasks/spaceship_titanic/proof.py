"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text

STARTER = Path(__file__).parent / "starter" / "train.py"
STUB = '    raise NotImplementedError("the model is still missing: define it in fit, train it, and return it")\n'
BOOSTING = '''"""Predict who was transported: boosted trees on sleep, spending, age and the parts of the cabin."""

import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import cross_val_score

SPENDING = ["RoomService", "FoodCourt", "ShoppingMall", "Spa", "VRDeck"]

train = pd.read_csv("train.csv", index_col="PassengerId")
test = pd.read_csv("test.csv", index_col="PassengerId")
passengers = pd.concat([train.drop(columns="Transported"), test])

cabin = passengers["Cabin"].str.split("/", expand=True).set_axis(["Deck", "CabinNumber", "Side"], axis=1)
words = passengers[["HomePlanet", "CryoSleep", "Destination", "VIP"]].join(cabin[["Deck", "Side"]]).astype("object")
features = pd.get_dummies(words).join(passengers[["Age", *SPENDING]].fillna(passengers[["Age", *SPENDING]].median()))
features["Total"] = features[SPENDING].sum(axis=1)

answers = train["Transported"].astype(bool)
model = GradientBoostingClassifier(n_estimators=150, max_depth=3, learning_rate=0.08, subsample=0.7, random_state=0)
print(f"validation accuracy: {cross_val_score(model, features.loc[train.index], answers, cv=3).mean():.4f}")

model.fit(features.loc[train.index], answers)
pd.DataFrame({"Transported": model.predict(features.loc[test.index])}, index=test.index).to_csv("submission.csv")
'''


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the true answers, in two row orders and with the columns swapped."""
    answers = _answers(data)
    return {
        "answers": _files(answers),
        "reversed": _files(answers.reverse()),
        "columns swapped": _files(answers.select("Transported", "PassengerId")),
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one answer for all passengers, the answers of other passengers, and the opposite answers."""
    answers = _answers(data)
    train = pl.read_csv(data.public / "train.csv", infer_schema=False)["Transported"]
    majority = "True" if (train == "True").mean() > 0.5 else "False"  # type: ignore[operator]
    opposite = pl.when(pl.col("Transported") == "True").then(pl.lit("False")).otherwise(pl.lit("True"))
    return {
        "majority": _files(answers.with_columns(Transported=pl.lit(majority))),
        "constant": _files(answers.with_columns(Transported=pl.lit("True"))),
        "shuffled": _files(shuffled(answers, "PassengerId")),
        "reversed under the same ids": _files(answers.with_columns(answers["PassengerId"].reverse())),
        "opposite": _files(answers.with_columns(Transported=opposite)),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse."""
    answers = _answers(data)
    probabilities = answers.with_columns(Transported=pl.when(pl.col("Transported") == "True").then(0.9).otherwise(0.1))
    numbers = answers.with_columns(PassengerId=pl.col("PassengerId").str.replace("_", ""))
    return {
        **invalid_tables(table_text(answers), id_column="PassengerId", number_column="Transported"),
        "probabilities": Invalid(_files(probabilities), "write True or False"),
        "ids as numbers": Invalid(_files(numbers), "lacks"),
        "no header": Invalid({"submission.csv": answers.write_csv(include_header=False)}, "header"),
    }


def solution() -> Files:
    """Return a script with boosted trees on nearly all columns."""
    return {"train.py": BOOSTING}


def ineffective() -> Files:
    """Return the starter with a model that always predicts the majority."""
    model = '    return DummyClassifier(strategy="most_frequent").fit(X, y)\n'
    text = STARTER.read_text(encoding="utf-8").replace(STUB, model)
    return {"train.py": text.replace("import pandas as pd\n", "import pandas as pd\nfrom sklearn.dummy import DummyClassifier\n")}


def _answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv", infer_schema=False)


def _files(frame: pl.DataFrame) -> Files:
    return {"submission.csv": table_text(frame)}
