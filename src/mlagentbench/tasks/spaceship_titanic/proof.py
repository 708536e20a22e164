"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.spaceship_titanic.grade import TABLE

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

TRUE = pl.col("Transported") == "True"

oracle = TABLE.oracle


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one answer for all passengers, the answers of other passengers, and the opposite answers."""
    majority = pl.read_csv(data.public / "train.csv", infer_schema=False)["Transported"].mode().sort()[0]
    return {
        **TABLE.naive(data),
        "majority": TABLE.changed(data, Transported=majority),
        "constant": TABLE.changed(data, Transported="True"),
        "opposite": TABLE.changed(data, Transported=pl.when(TRUE).then(pl.lit("False")).otherwise(pl.lit("True"))),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse."""
    return {
        **TABLE.invalid(data),
        "probabilities": TABLE.refused(data, "write True or False", Transported=pl.when(TRUE).then(0.9).otherwise(0.1)),
        "ids as numbers": TABLE.refused(data, "lacks", PassengerId=pl.col("PassengerId").str.replace("_", "")),
    }


def solution() -> Files:
    """Return a script with boosted trees on nearly all columns."""
    return {"train.py": BOOSTING}


def ineffective() -> Files:
    """Return the starter with a model that always predicts the majority."""
    imports = "import pandas as pd\n"
    model = '    return DummyClassifier(strategy="most_frequent").fit(X, y)\n'
    return edited_starter(__file__, {STUB: model, imports: imports + "from sklearn.dummy import DummyClassifier\n"})
