"""What sets runs apart."""

from __future__ import annotations

from mlagentbench.results.conditions import agent_words, hardware_words
from mlagentbench.run_spec import GivenFolder, Imported, ModelSpec
from tests.example_runs import run_info


def test_an_agent_is_told_with_all_that_sets_it_apart() -> None:
    plain = run_info("a-run", agent_options={})
    assert agent_words(plain) == "research"
    main = ModelSpec(name="openai/o3", options={"reasoning": "high"})
    given = GivenFolder(folder="notes", files=1, bytes=10, digest="3f9a41c0ffee")
    other = plain.model_copy(
        update={
            "spec": plain.spec.replace(agent_options={"research_log": True}, models={"agent": main}),
            "experience": given,
            "imported": Imported(folder="logs", digest="0"),
            "parent": "another-run/3",
        }
    )
    assert agent_words(other) == "research (research_log true, reasoning high, with experience 3f9a41c0, imported, forked)"


def test_hardware_is_the_processor_and_the_gpus() -> None:
    assert hardware_words(run_info("a-run", hardware={"cpu": "AMD EPYC 9654", "gpus": ["H200", "H200"]})) == "AMD EPYC 9654, H200, H200"
    assert hardware_words(run_info("a-run", hardware={"cpu": "AMD EPYC 9654", "gpus": []})) == "AMD EPYC 9654"
    assert hardware_words(run_info("a-run", hardware={})) == ""
