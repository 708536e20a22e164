"""Look up the prices of models, in prices.toml or a user's file, and configure Inspect with them.

Inspect counts the cost of each reply, with cached tokens at their own prices, but has no prices of its own.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from inspect_ai.model import Model as InspectModel
from inspect_ai.model import ModelCost, ModelInfo, get_model_info, set_model_info
from pydantic import Field, ValidationError

from mlagentbench.errors import UsageError
from mlagentbench.records import Price, Record
from mlagentbench.run_spec import RunSpec
from mlagentbench.util.text import first_fault

KEPT = Path(__file__).with_name("prices.toml")
INSPECT = "Inspect's model cost configuration"
"""The source of prices that a user gave to Inspect itself, such as with `inspect eval --model-cost-config`."""
SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")
"""Matches the date at the end of a snapshot's name. A snapshot costs as much as its model, unless it has a price of its own."""

_prices_set: dict[str, Price] = {}
"""The prices that this module has set in Inspect, by model."""


class _PriceEntry(Record):
    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)


class _PriceList(Record):
    source: str
    date: datetime.date
    prices: Mapping[str, _PriceEntry]


class _PriceFile(Record):
    list: tuple[_PriceList, ...]


def read_prices(file: Path) -> Mapping[str, Price]:
    """Return the prices in a file, by model.

    Raises:
        UsageError: the file cannot be read, or does not have the format of prices.toml.
    """
    try:
        lists = _PriceFile.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))).list
    except OSError as error:
        raise UsageError(f"the prices {file} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise UsageError(f"the prices {file}: {first_fault(error)}; docs/models.md shows the form") from None
    except ValueError as error:
        raise UsageError(f"the prices {file} are no TOML: {error}") from None
    return {
        model: Price(
            input=entry.input,
            output=entry.output,
            cache_read=entry.input if entry.cache_read is None else entry.cache_read,
            cache_write=entry.input if entry.cache_write is None else entry.cache_write,
            source=each.source,
            date=each.date,
        )
        for each in lists
        for model, entry in each.prices.items()
    }


def price_of(model: str, given: Mapping[str, Price]) -> Price | None:
    """Return the price of a model by Inspect's name of it, the given one before that of prices.toml; None if it is not known."""
    for name in (model, SNAPSHOT.sub("", model)):
        if found := given.get(name) or _kept().get(name):
            return found
    return None


def unpriced(spec: RunSpec) -> list[str]:
    """Return the models of a spec whose price is not known."""
    return [name for name in dict.fromkeys(model.name for model in spec.models.values()) if price_of(name, spec.prices) is None]


def check_prices(spec: RunSpec) -> None:
    """Raise UsageError if a spec limits the cost and a model has no known price.

    Raises:
        UsageError: the price of a model is not known.
    """
    unknown = unpriced(spec)
    if spec.limits.cost is not None and unknown:
        raise UsageError(
            f"--cost cannot hold: the price of {' and '.join(unknown)} is not known; give it with --prices FILE, or limit --tokens instead"
        )


def set_prices(models: Iterable[InspectModel], given: Mapping[str, Price]) -> Mapping[str, Price]:
    """Set the prices of models in Inspect, which then counts their cost, and return the prices in effect, by model.

    Prices that a user gave to Inspect itself take precedence over all others.
    """
    held: dict[str, Price] = {}
    for model in models:
        name, info = str(model), get_model_info(model)
        if info is not None and info.cost is not None and name not in _prices_set:
            held[name] = _of_inspect(info.cost)
            continue
        price = price_of(name, given)
        if price is not None:
            held[name] = _prices_set[name] = price
        if price is not None or _prices_set.pop(name, None) is not None:
            set_model_info(name, (info or ModelInfo()).model_copy(update={"cost": _as_cost(price)}))
    return held


@cache
def _kept() -> Mapping[str, Price]:
    return read_prices(KEPT)


def _as_cost(price: Price | None) -> ModelCost | None:
    if price is None:
        return None
    return ModelCost(input=price.input, output=price.output, input_cache_read=price.cache_read, input_cache_write=price.cache_write)


def _of_inspect(cost: ModelCost) -> Price:
    return Price(input=cost.input, output=cost.output, cache_read=cost.input_cache_read, cache_write=cost.input_cache_write, source=INSPECT)
