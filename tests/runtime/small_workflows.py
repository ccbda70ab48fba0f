"""Small workflows through which the payloads of every kind of call pass."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from perdure.contracts.base import Contract

LIMIT = timedelta(seconds=20)


class Words(Contract):
    """What the workflows take and give."""

    text: str


@activity.defn(name="say")
async def say(words: Words) -> Words:
    """Give the words back; some of them mean something else."""
    if words.text.startswith("fail"):
        raise ApplicationError(words.text, type="Asked", non_retryable=True)
    if words.text.startswith("grow"):
        return Words(text="x" * 20_000)
    return words


@workflow.defn(name="talk")
class TalkWorkflow:
    """Runs one activity, waits for a signal, starts a child, continues as new once, ends with all it heard."""

    @workflow.init
    def __init__(self, words: Words) -> None:
        self.heard: list[str] = []

    @workflow.run
    async def run(self, words: Words) -> Words:
        """Talk."""
        said = await workflow.execute_activity(
            "say", words, result_type=Words, start_to_close_timeout=LIMIT, summary=words.text
        )
        await workflow.wait_condition(lambda: bool(self.heard))
        child = await workflow.execute_child_workflow(
            "echo", said, result_type=Words, id=workflow.info().workflow_id + "/child"
        )
        return Words(text=f"{child.text} and {self.heard[0]}")

    @workflow.signal
    def hear(self, words: Words) -> None:
        """Let it go on."""
        self.heard.append(words.text)

    @workflow.update
    async def ask(self, words: Words) -> Words:
        """Answer."""
        return words

    @workflow.query
    def told(self, words: Words) -> Words:
        """Answer without a trace."""
        return words


@workflow.defn(name="echo")
class EchoWorkflow:
    """Gives back what it was given, in a second run."""

    @workflow.run
    async def run(self, words: Words) -> Words:
        """Echo."""
        if not words.text.startswith("again"):
            workflow.continue_as_new(Words(text=f"again {words.text}"))
        return words


@workflow.defn(name="big")
class BigWorkflow:
    """Tries to pass something that is too large."""

    @workflow.run
    async def run(self, what: str) -> Words:
        """Try."""
        big = Words(text="x" * 20_000)
        if what == "argument":
            await workflow.execute_activity("say", big, start_to_close_timeout=LIMIT)
        if what == "result":
            await workflow.execute_activity(
                "say",
                Words(text="grow"),
                result_type=Words,
                start_to_close_timeout=LIMIT,
                retry_policy=RetryPolicy(maximum_attempts=5, initial_interval=timedelta(milliseconds=1)),
            )
        if what == "failure":
            await workflow.execute_activity("say", Words(text="fail" + "é" * 5000), start_to_close_timeout=LIMIT)
        return big
