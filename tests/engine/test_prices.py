"""What models cost: the list prices that are kept, a file over them, cached tokens at their own price, and limits that can hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from inspect_ai.model import ModelCost, ModelInfo, get_model, set_model_info
from inspect_ai.model._model_info import clear_model_info_cache

from mlagentbench.engine.models.model import RoleModel
from mlagentbench.engine.models.prices import KEPT, check_prices, price_of, read_prices, set_prices
from mlagentbench.errors import UsageError
from mlagentbench.model import GenerateOptions
from mlagentbench.records import Price
from mlagentbench.run_spec import ModelSpec, RunInfo, RunLimits, RunSpec
from mlagentbench.rundir.directory import find_runs
from tests.cli.test_cli import END, LIST, complaint, mlab, run, script
from tests.engine.server import CACHED, READ, WRITTEN, Provider

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

OURS = """
[[list]]
source = "our contract"
date = 2026-11-20
prices."openai/gpt-4o" = { input = 2.0, output = 8.0, cache_read = 0.2 }
prices."scripted/*" = { input = 1000, output = 1000 }
"""


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Leave no price in Inspect's memory."""
    yield
    clear_model_info_cache()


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    file = tmp_path / "prices.toml"
    file.write_text(OURS.replace("scripted/*", f"scripted/{tmp_path / 'script.yaml'}"))
    return file


def test_each_price_that_is_kept_has_its_source_and_its_day() -> None:
    kept = read_prices(KEPT)
    assert {model.split("/")[0] for model in kept} == {"openai", "anthropic", "google"}
    for price in kept.values():
        assert price.date is not None and "list prices (https://" in price.source
        assert 0 < price.cache_read <= price.input <= price.cache_write < price.output


def test_a_snapshot_costs_what_its_model_does_unless_it_has_a_price_of_its_own() -> None:
    def cost(model: str) -> float | None:
        price = price_of(model, {})
        return price.input if price else None

    names = ("openai/gpt-4o", "openai/gpt-4o-2024-08-06", "openai/gpt-4o-2024-05-13", "anthropic/claude-haiku-4-5-20251001")
    assert [cost(name) for name in names] == [2.5, 2.5, 5.0, 1.0]
    assert [cost(name) for name in ("openai/gpt-4o-search", "openrouter/openai/gpt-4o", "scripted/demo", "none/none")] == [None] * 4


def test_a_file_comes_before_what_is_kept(ours: Path) -> None:
    price = price_of("openai/gpt-4o", read_prices(ours))
    assert price is not None
    assert (price.source, str(price.date), price.cache_read, price.cache_write) == ("our contract", "2026-11-20", 0.2, 2.0)
    assert price_of("openai/gpt-4o-mini", read_prices(ours)) == price_of("openai/gpt-4o-mini", {})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("output = 8.0, ", "", r"list\.0\.prices\.openai/gpt-4o\.output: Field required"),
        ("input = 2.0", "input = -1", r"input: Input should be greater than or equal to 0"),
        ("cache_read", "cached", r"openai/gpt-4o\.cached: there is no such key"),
        ("date = 2026-11-20", "", r"list\.0\.date: Field required"),
        ("[[list]]", "[[list]", r"are no TOML: .*line 2"),
    ],
)
def test_a_file_that_breaks_the_form_is_one_line(ours: Path, old: str, new: str, words: str) -> None:
    ours.write_text(ours.read_text().replace(old, new, 1))
    with pytest.raises(UsageError, match=words):
        read_prices(ours)


def test_a_limit_of_cost_needs_the_price_of_every_model() -> None:
    spec = RunSpec(task="a-task", models={"agent": ModelSpec(name="openai/gpt-4o")}, limits=RunLimits(cost=1.0))
    scripted = ModelSpec(name="scripted/demo")
    check_prices(spec)
    check_prices(spec.replace(models={"agent": scripted}, limits=RunLimits()))
    with pytest.raises(UsageError, match="--cost cannot hold: the price of scripted/demo is not known; give it with --prices FILE"):
        check_prices(spec.replace(models={**spec.models, "fast": scripted}))


def asked(name: str, given: dict[str, Price]) -> float | None:
    """What a reply of a model costs."""

    async def ask() -> float | None:
        async with get_model(name, memoize=False) as model:
            set_prices([model], given)
            return (await RoleModel(model, "agent").generate("Say hello.", GenerateOptions(max_tokens=100))).usage.cost

    return asyncio.run(ask())


def test_cached_tokens_are_counted_at_their_own_price(server: Provider, ours: Path) -> None:
    server.behave("Hello.")
    assert asked("openai/gpt-4o", {}) == pytest.approx((2.5 * READ + 1.25 * CACHED + 10 * WRITTEN) / 1e6)
    assert asked("anthropic/claude-haiku-4-5", {}) == pytest.approx((1.0 * READ + 0.1 * CACHED + 5 * WRITTEN) / 1e6)
    assert asked("openai/gpt-4o", dict(read_prices(ours))) == pytest.approx((2 * READ + 0.2 * CACHED + 8 * WRITTEN) / 1e6)
    assert asked("openai/gpt-unheard-of", {}) is None


def test_what_inspect_was_told_by_others_stays(server: Provider) -> None:
    cost = ModelCost(input=1.0, output=1.0, input_cache_read=1.0, input_cache_write=1.0)
    set_model_info("openai/gpt-4o-mini", ModelInfo(cost=cost))
    (price,) = set_prices([get_model("openai/gpt-4o-mini")], {}).values()
    assert (price.input, price.source) == (1.0, "Inspect's model cost configuration")
    assert asked("openai/gpt-4o-mini", {}) == pytest.approx((READ + CACHED + WRITTEN) / 1e6)


def test_a_run_is_refused_a_limit_that_cannot_hold_and_keeps_the_price_that_held(tmp_path: Path, ours: Path) -> None:
    command = (*run(tmp_path), "--model", script(tmp_path / "script.yaml", LIST, LIST, LIST, END), "--sandbox", "none", "--cost", "0.5")
    assert "the price of scripted/" in complaint(mlab(*command))
    assert list((tmp_path / "runs").glob("*/run.json")) == [], "before it begins"

    finished = mlab(*command, "--prices", ours, "--json")
    told = json.loads(finished.stdout)
    assert told["ended"] == "limit_cost" and told["cost"] == pytest.approx(told["tokens"] / 1000)
    (directory,) = find_runs(tmp_path / "runs")
    info: RunInfo = directory.info
    assert [(price.source, price.input) for price in info.spec.prices.values()] == [("our contract", 1000.0)]
    assert "at our contract of 2026-11-20" in " ".join(mlab("show", directory.path).stdout.split())
