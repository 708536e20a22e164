"""Make synthetic houses with the columns, values and gaps of the Ames housing table (De Cock, Journal of Statistics Education 19(3), 2011).

A house's price depends on its quality, condition, size, age, lot, basement, kitchen, garage and neighbourhood, with heavy-tailed noise. The
other columns are consistent as in a real house: one without a garage has no year in which a garage was built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[Any]

MEDIAN_PRICE = 163_000
NOISE = 0.075
"""Scale of the noise on the logarithm of the price: a Student's t with 5 degrees of freedom."""
NEIGHBORHOODS = (
    *(
        "NAmes",
        "CollgCr",
        "OldTown",
        "Edwards",
        "Somerst",
        "Gilbert",
        "NridgHt",
        "Sawyer",
        "NWAmes",
        "SawyerW",
        "BrkSide",
        "Crawfor",
        "Mitchel",
    ),
    *("NoRidge", "Timber", "IDOTRR", "ClearCr", "StoneBr", "SWISU", "MeadowV", "Blmngtn", "BrDale", "Veenker", "NPkVill", "Blueste"),
)
GRADES = ("Ex", "Gd", "TA", "Fa")
OTHER_CHOICES: Mapping[str, Mapping[str, float]] = {
    "MSZoning": {"RL": 0.79, "RM": 0.15, "FV": 0.04, "RH": 0.01, "C (all)": 0.01},
    "Street": {"Pave": 0.995, "Grvl": 0.005},
    "Alley": {"NA": 0.94, "Grvl": 0.03, "Pave": 0.03},
    "LotShape": {"Reg": 0.63, "IR1": 0.33, "IR2": 0.03, "IR3": 0.01},
    "LandContour": {"Lvl": 0.9, "Bnk": 0.04, "HLS": 0.04, "Low": 0.02},
    "Utilities": {"AllPub": 0.999, "NoSeWa": 0.001},
    "LotConfig": {"Inside": 0.72, "Corner": 0.18, "CulDSac": 0.06, "FR2": 0.03, "FR3": 0.01},
    "LandSlope": {"Gtl": 0.945, "Mod": 0.045, "Sev": 0.01},
    "Condition1": {"Norm": 0.86, "Feedr": 0.06, "Artery": 0.03, "RRAn": 0.02, "PosN": 0.02, "RRAe": 0.01},
    "Condition2": {"Norm": 0.99, "Feedr": 0.005, "Artery": 0.005},
    "BldgType": {"1Fam": 0.83, "TwnhsE": 0.08, "Duplex": 0.04, "Twnhs": 0.03, "2fmCon": 0.02},
    "RoofStyle": {"Gable": 0.78, "Hip": 0.2, "Flat": 0.01, "Gambrel": 0.01},
    "RoofMatl": {"CompShg": 0.98, "Tar&Grv": 0.01, "WdShngl": 0.01},
    "Exterior1st": {"VinylSd": 0.36, "HdBoard": 0.15, "MetalSd": 0.15, "Wd Sdng": 0.14, "Plywood": 0.08, "CemntBd": 0.06, "BrkFace": 0.06},
    "Exterior2nd": {"VinylSd": 0.36, "HdBoard": 0.15, "MetalSd": 0.15, "Wd Sdng": 0.14, "Plywood": 0.1, "CmentBd": 0.06, "Wd Shng": 0.04},
    "ExterCond": {"TA": 0.88, "Gd": 0.1, "Fa": 0.02},
    "Foundation": {"PConc": 0.44, "CBlock": 0.44, "BrkTil": 0.1, "Slab": 0.02},
    "Heating": {"GasA": 0.98, "GasW": 0.01, "Grav": 0.01},
    "HeatingQC": {"Ex": 0.51, "TA": 0.29, "Gd": 0.17, "Fa": 0.03},
    "CentralAir": {"Y": 0.93, "N": 0.07},
    "Electrical": {"SBrkr": 0.914, "FuseA": 0.065, "FuseF": 0.02, "NA": 0.001},
    "Functional": {"Typ": 0.93, "Min2": 0.025, "Min1": 0.025, "Mod": 0.01, "Maj1": 0.01},
    "PavedDrive": {"Y": 0.92, "N": 0.06, "P": 0.02},
    "PoolQC": {"NA": 0.994, "Ex": 0.002, "Gd": 0.002, "Fa": 0.002},
    "Fence": {"NA": 0.81, "MnPrv": 0.11, "GdPrv": 0.04, "GdWo": 0.04},
    "MiscFeature": {"NA": 0.963, "Shed": 0.034, "Othr": 0.003},
    "SaleType": {"WD": 0.87, "New": 0.085, "COD": 0.03, "ConLD": 0.015},
    "SaleCondition": {"Normal": 0.82, "Partial": 0.09, "Abnorml": 0.07, "Family": 0.02},
}
"""Columns that do not affect the price, with the frequency of each value."""
COLUMNS = (
    *("Id", "MSSubClass", "MSZoning", "LotFrontage", "LotArea", "Street", "Alley", "LotShape", "LandContour", "Utilities", "LotConfig"),
    *("LandSlope", "Neighborhood", "Condition1", "Condition2", "BldgType", "HouseStyle", "OverallQual", "OverallCond", "YearBuilt"),
    *("YearRemodAdd", "RoofStyle", "RoofMatl", "Exterior1st", "Exterior2nd", "MasVnrType", "MasVnrArea", "ExterQual", "ExterCond"),
    *("Foundation", "BsmtQual", "BsmtCond", "BsmtExposure", "BsmtFinType1", "BsmtFinSF1", "BsmtFinType2", "BsmtFinSF2", "BsmtUnfSF"),
    *("TotalBsmtSF", "Heating", "HeatingQC", "CentralAir", "Electrical", "1stFlrSF", "2ndFlrSF", "LowQualFinSF", "GrLivArea"),
    *("BsmtFullBath", "BsmtHalfBath", "FullBath", "HalfBath", "BedroomAbvGr", "KitchenAbvGr", "KitchenQual", "TotRmsAbvGrd", "Functional"),
    *("Fireplaces", "FireplaceQu", "GarageType", "GarageYrBlt", "GarageFinish", "GarageCars", "GarageArea", "GarageQual", "GarageCond"),
    *("PavedDrive", "WoodDeckSF", "OpenPorchSF", "EnclosedPorch", "3SsnPorch", "ScreenPorch", "PoolArea", "PoolQC", "Fence"),
    *("MiscFeature", "MiscVal", "MoSold", "YrSold", "SaleType", "SaleCondition", "SalePrice"),
)


def houses(count: int, seed: int) -> pl.DataFrame:
    """Make synthetic houses.

    Returns:
        `count` rows with the 81 `COLUMNS`; gaps are the text NA.
    """
    rng = np.random.default_rng(seed)
    core = _core(count, rng)
    columns = {"Id": np.arange(1, count + 1), **core, **_basement(core, rng), **_garage(core, rng), **_outside(core, rng)}
    columns |= {name: _draw(rng, shares, count) for name, shares in OTHER_CHOICES.items()}
    columns["PoolArea"] = np.where(columns["PoolQC"] == "NA", 0, rng.integers(450, 750, count))
    columns["MiscVal"] = np.where(columns["MiscFeature"] == "NA", 0, 50 * rng.integers(7, 25, count))
    return pl.DataFrame({name: columns[name] for name in COLUMNS})


def _core(count: int, rng: np.random.Generator) -> dict[str, Array]:
    """Draw the columns that the price depends on, the price, and the columns that depend on these."""
    quality = np.clip(rng.normal(6, 1.4, count).round(), 1, 10).astype(int)
    condition = np.clip(rng.normal(5.6, 1.1, count).round(), 1, 9).astype(int)
    built = (1900 + 110 * rng.beta(3, 1.6, count)).astype(int)
    renewed = np.maximum(built, np.minimum(2010, built + rng.integers(0, 50, count)))
    living = np.exp(rng.normal(7.27, 0.32, count)).astype(int)
    upstairs = np.where(rng.random(count) < 0.42, living * rng.uniform(0.3, 0.5, count), 0).astype(int)
    lot = np.exp(rng.normal(9.1, 0.5, count)).astype(int)
    basement = np.where(rng.random(count) < 0.025, 0, (living - upstairs) * rng.uniform(0.6, 1.1, count)).astype(int)
    cars = np.clip(rng.normal(1.8, 0.75, count).round(), 0, 4).astype(int)
    kitchen = rng.choice(4, count, p=(0.07, 0.4, 0.5, 0.03))
    baths = np.clip((living / 900 + rng.normal(0.2, 0.4, count)).round(), 1, 3).astype(int)
    fireplaces = rng.choice(4, count, p=(0.47, 0.45, 0.07, 0.01))
    place = rng.integers(len(NEIGHBORHOODS), size=count)
    log_price = (
        0.095 * quality
        + 0.42 * np.log(living)
        + 0.0021 * built
        + 0.06 * np.log(lot)
        + rng.normal(0, 0.08, len(NEIGHBORHOODS))[place]
        + 0.00008 * basement
        + 0.05 * cars
        + 0.025 * condition
        + 0.0012 * renewed
        + np.array((0.12, 0.03, -0.03, -0.12))[kitchen]
        + 0.03 * fireplaces
        + 0.02 * baths
        - 0.15 * ((quality < 4) & (built < 1930))
        + NOISE * rng.standard_t(5, count)
    )
    grades = np.array(GRADES)
    outer = np.where(quality >= 8, rng.choice(2, count), rng.choice((1, 2, 3), count, p=(0.3, 0.65, 0.05)))
    one_storey = np.where(built < 1946, 30, 20)
    two_storeys = np.where(built < 1946, 70, 60)
    return {
        "OverallQual": quality,
        "OverallCond": condition,
        "YearBuilt": built,
        "YearRemodAdd": renewed,
        "GrLivArea": living,
        "1stFlrSF": living - upstairs,
        "2ndFlrSF": upstairs,
        "LowQualFinSF": np.where(rng.random(count) < 0.02, rng.integers(50, 500, count), 0),
        "MSSubClass": np.where(
            rng.random(count) < 0.2, rng.choice((50, 80, 90, 120, 160), count), np.where(upstairs, two_storeys, one_storey)
        ),
        "HouseStyle": np.where(upstairs, "2Story", np.where(rng.random(count) < 0.85, "1Story", rng.choice(("SLvl", "1.5Fin"), count))),
        "LotArea": lot,
        "LotFrontage": _gaps(rng, 0.177, (0.7 * np.sqrt(lot)).astype(int)),
        "TotalBsmtSF": basement,
        "GarageCars": cars,
        "KitchenQual": grades[kitchen],
        "ExterQual": grades[outer],
        "FullBath": baths,
        "HalfBath": rng.choice(2, count, p=(0.63, 0.37)),
        "BedroomAbvGr": np.clip(living // 450, 1, 6),
        "KitchenAbvGr": np.where(rng.random(count) < 0.045, 2, 1),
        "TotRmsAbvGrd": np.clip(living // 230, 3, 12),
        "Fireplaces": fireplaces,
        "FireplaceQu": np.where(fireplaces == 0, "NA", grades[rng.choice(4, count, p=(0.03, 0.5, 0.42, 0.05))]),
        "Neighborhood": np.array(NEIGHBORHOODS)[place],
        "MoSold": rng.integers(1, 13, count),
        "YrSold": rng.integers(2006, 2011, count),
        "SalePrice": (np.exp(log_price - np.median(log_price)) * MEDIAN_PRICE / 100).round().astype(int) * 100,
    }


def _basement(core: Mapping[str, Array], rng: np.random.Generator) -> dict[str, Array]:
    area = core["TotalBsmtSF"]
    none, count = area == 0, len(area)
    types = {"GLQ": 0.29, "ALQ": 0.15, "BLQ": 0.1, "Rec": 0.09, "LwQ": 0.05, "Unf": 0.32}
    first = np.where(none, "NA", _draw(rng, types, count))
    finished = np.where(np.isin(first, ("NA", "Unf")), 0, area * rng.uniform(0.2, 0.9, count)).astype(int)
    second = np.where(none, "NA", _draw(rng, {"Unf": 0.88, "Rec": 0.06, "LwQ": 0.06}, count))
    more = np.where(np.isin(second, ("NA", "Unf")), 0, (area - finished) * rng.uniform(0.2, 0.9, count)).astype(int)
    return {
        "BsmtQual": np.where(none, "NA", core["KitchenQual"]),
        "BsmtCond": np.where(none, "NA", _draw(rng, {"TA": 0.92, "Gd": 0.05, "Fa": 0.03}, count)),
        "BsmtExposure": np.where(none, "NA", _draw(rng, {"No": 0.67, "Av": 0.16, "Gd": 0.09, "Mn": 0.08}, count)),
        "BsmtFinType1": first,
        "BsmtFinSF1": finished,
        "BsmtFinType2": second,
        "BsmtFinSF2": more,
        "BsmtUnfSF": area - finished - more,
        "BsmtFullBath": np.where(finished > 0, rng.choice(2, count, p=(0.4, 0.6)), 0),
        "BsmtHalfBath": np.where(rng.random(count) < 0.055, 1, 0),
    }


def _garage(core: Mapping[str, Array], rng: np.random.Generator) -> dict[str, Array]:
    cars, built = core["GarageCars"], core["YearBuilt"]
    none, count = cars == 0, len(cars)
    return {
        "GarageType": np.where(none, "NA", _draw(rng, {"Attchd": 0.63, "Detchd": 0.28, "BuiltIn": 0.07, "Basment": 0.02}, count)),
        "GarageYrBlt": np.where(none, "NA", np.maximum(built, built + rng.integers(-20, 10, count)).astype(str)),
        "GarageFinish": np.where(none, "NA", _draw(rng, {"Unf": 0.44, "RFn": 0.31, "Fin": 0.25}, count)),
        "GarageArea": np.where(none, 0, 260 * cars + rng.integers(-40, 41, count)),
        "GarageQual": np.where(none, "NA", _draw(rng, {"TA": 0.95, "Fa": 0.04, "Gd": 0.01}, count)),
        "GarageCond": np.where(none, "NA", _draw(rng, {"TA": 0.96, "Fa": 0.03, "Gd": 0.01}, count)),
    }


def _outside(core: Mapping[str, Array], rng: np.random.Generator) -> dict[str, Array]:
    count = len(core["LotArea"])

    def sometimes(share: float, low: int, high: int) -> Array:
        return np.where(rng.random(count) < share, rng.integers(low, high, count), 0)

    # As in the real table, the word None means that there is no veneer, and NA that it is not known.
    veneer = _draw(rng, {"None": 0.594, "BrkFace": 0.305, "Stone": 0.085, "BrkCmn": 0.01, "NA": 0.006}, count)
    area = np.where(veneer == "None", 0, rng.integers(20, 600, count)).astype(str)
    return {
        "MasVnrType": veneer,
        "MasVnrArea": np.where(veneer == "NA", "NA", area),
        "WoodDeckSF": sometimes(0.48, 40, 400),
        "OpenPorchSF": sometimes(0.55, 15, 200),
        "EnclosedPorch": sometimes(0.14, 30, 280),
        "3SsnPorch": sometimes(0.016, 100, 400),
        "ScreenPorch": sometimes(0.08, 60, 350),
    }


def _draw(rng: np.random.Generator, shares: Mapping[str, float], count: int) -> Array:
    weights = np.array(list(shares.values()))
    return rng.choice(list(shares), count, p=weights / weights.sum())


def _gaps(rng: np.random.Generator, share: float, values: Array) -> Array:
    return np.where(rng.random(len(values)) < share, "NA", values.astype(str))
