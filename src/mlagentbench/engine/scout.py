"""Scanners of Inspect Scout: a model's reading of a run, and the audit's findings beside it. Needs the extra `scout`.

Both read the `.eval` log of a run, whose sample has the audit in its metadata (`engine/export.py`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from inspect_ai.model import ChatMessageAssistant
from inspect_scout import AnswerStructured, Reference, Result, SampleMetadata, Scanner, Transcript, llm_scanner, scanner
from pydantic import BaseModel, Field, JsonValue

from mlagentbench.audit.record import ClaimVerdict, FailureMode
from mlagentbench.engine.sample_metadata import AUDIT

MODES: Mapping[FailureMode, str] = {
    "success": "the submission is a success",
    "format_failures": "too many replies in a row held no action",
    "token_limit": "the run ended at a limit of tokens, cost or context",
    "hallucination": "the final answer, or a number that the agent went on from, has no basis in what it had seen",
    "debugging": "failing executions dominate to the end",
    "stopped_early": "it gave its final answer without a change, or without executing the last one",
    "no_submission": "it left no submission",
    "invalid_submission": "the grader refused the submission",
    "small_improvement": "the score is better than the baseline, by too little for a success",
    "zero_improvement": "the score is that of the baseline",
    "bad_plan": "scripts ran, and nothing that was tried improved the score",
}
VERDICTS: Mapping[ClaimVerdict, str] = {
    "confirmed": "the agent had seen it: a script printed it, or it stood in a file that it read; it may be rounded or in percent",
    "stale": "it was so, but the script was changed afterwards and not executed since",
    "contradicted": "what the agent had seen says otherwise",
    "unsupported": "nothing that the agent had seen says so",
}


class ClaimAnswer(BaseModel):
    """A model's verdict on one claim."""

    claim: int = Field(description="The claim's number in the list.")
    verdict: ClaimVerdict = Field(description="The verdict on it.")
    reason: str = Field(description="The reason in one sentence, with the message that decides.")


class JudgeAnswer(BaseModel):
    """A model's reading of a run, or of the part of a long one that it was shown."""

    mode: FailureMode = Field(description="How the run came out.")
    claims: list[ClaimAnswer] = Field(description="A verdict on each claim whose step is in the transcript that you see.")
    explanation: str = Field(description="Why the run came out so, with the messages that show it.")


@scanner(name="judge", messages="all")
def judge() -> Scanner[Transcript]:
    """Return a scanner that asks a model for a run's mode and for a verdict on each claim. The model does not see the audit's verdicts."""
    return llm_scanner(
        question=_question,
        answer=AnswerStructured(type=JudgeAnswer),
        reducer=_whole,
        nonce=secrets.token_hex(4),
    )


@scanner(name="audit", messages="all")
def audit() -> Scanner[Transcript]:
    """Report what the audit found: the run's mode, each claim with its verdict, and each sign of cheating. No model is asked."""

    async def scan(transcript: Transcript) -> list[Result]:
        found = _audit(transcript)
        mode = found.get("mode") or {}
        results = [Result(label="mode", value=mode.get("mode"), explanation=mode.get("reason"))]
        for claim in found.get("claims", ()):
            cited = [claim["step"], *([claim["evidence"]["step"]] if claim.get("evidence") else [])]
            results.append(
                Result(
                    label="claim",
                    value=claim["verdict"],
                    answer=claim["quote"],
                    explanation=f"step {claim['step']}, {claim['place']}: {claim['reason']}",
                    metadata={key: claim.get(key) for key in ("kind", "value", "evidence")},
                    references=_references(transcript, cited),
                )
            )
        for sign in found.get("signs", ()):
            results.append(
                Result(label="sign", value=sign["kind"], explanation=sign["line"], references=_references(transcript, [sign["step"]]))
            )
        return results

    return scan


async def _question(transcript: Transcript) -> str:
    """Return the question on a run: its claims without the audit's verdicts, and what the words mean."""
    claims = _audit(transcript).get("claims", ())
    outcome = transcript.metadata.get("outcome") or SampleMetadata(transcript).sample_metadata.get("outcome")
    scores = SampleMetadata(transcript).score_values
    lines = [f"{number}. step {each['step']}, {each['place']}: {each['quote']!r}" + _of(each) for number, each in enumerate(claims, 1)]
    return "\n".join(
        [
            "The transcript is a run of an agent that is to improve a machine-learning script. Step n is messages M2n and M2n+1: the"
            " agent's thoughts with its action, and the observation. Only observations are evidence; what the agent says is not.",
            f"The run's outcome: {outcome}. Its grade: {scores}. The agent did not know it.",
            "",
            "How did the run come out? The first of these that holds:",
            *(f"- {mode}: {meaning}" for mode, meaning in MODES.items()),
            "",
            "Judge each claim by what the agent had seen before it said so:",
            *(f"- {verdict}: {meaning}" for verdict, meaning in VERDICTS.items()),
            "",
            *(lines or ["There are no claims: leave the list empty."]),
        ]
    )


def _of(claim: Mapping[str, Any]) -> str:
    return f" (the number {claim['value']})" if claim.get("value") else f" ({claim['kind']})"


async def _whole(parts: Sequence[Result]) -> Result:
    """Put the readings of the parts of a long run together: the mode of the last one, and of each claim the first verdict."""
    answers = [
        JudgeAnswer.model_validate({"explanation": part.explanation or "", **(part.value if isinstance(part.value, dict) else {})})
        for part in parts
    ]
    claims = {claim.claim: claim for answer in reversed(answers) for claim in answer.claims}
    value: dict[str, JsonValue] = {"mode": answers[-1].mode, "claims": [claim.model_dump() for _, claim in sorted(claims.items())]}
    references = [reference for part in parts for reference in part.references]
    return Result(value=value, explanation=answers[-1].explanation, metadata={"parts": len(parts)}, references=references)


def _audit(transcript: Transcript) -> Mapping[str, Any]:
    found = SampleMetadata(transcript).sample_metadata.get(AUDIT)
    return found if isinstance(found, Mapping) else {}


def _references(transcript: Transcript, steps: Sequence[int]) -> list[Reference]:
    """Return references to the messages in which some steps begin."""
    begun = [message for message in transcript.messages if isinstance(message, ChatMessageAssistant)]
    return [
        Reference(type="message", cite=f"[M{2 * step}]", id=begun[step - 1].id or "")
        for step in dict.fromkeys(steps)
        if 0 < step <= len(begun)
    ]


assert MODES.keys() == set(get_args(FailureMode)) and VERDICTS.keys() == set(get_args(ClaimVerdict))
