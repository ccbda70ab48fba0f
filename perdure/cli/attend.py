"""Goes with a job to its end: follows it, shows its plan, asks, sends the decision, follows on."""

from __future__ import annotations

from collections.abc import Callable

from perdure.cli import codes
from perdure.cli.ask import ask, ask_text, choices
from perdure.cli.door import Door, Unreachable
from perdure.cli.edits import edit_in_editor
from perdure.cli.ending import say_end
from perdure.cli.follow import follow
from perdure.cli.lazy import ReaderLeft
from perdure.cli.pager import show_lines
from perdure.cli.plan_view import SHORT, diff_lines, has_diff, print_plan
from perdure.cli.plans import Kind, decide, read_job, read_plan
from perdure.cli.session import Session
from perdure.cli.words import deadline, exit_code
from perdure.contracts.base import JsonDict
from perdure.contracts.http import JobView, Review
from perdure.contracts.job import JobPhase
from perdure.errors import Conflict

WORDS = {"a": "approve", "d": "diff", "e": "edit", "c": "changes", "r": "reject", "l": "leave"}


class Attendant:
    """Stays with one job in one terminal. Leaving at any moment changes nothing."""

    def __init__(self, session: Session, door: Door, job: JobView) -> None:
        self._session = session
        self._door = door
        self.job = job
        self._position = 0
        self.own: set[str] = set()
        """Ids of decisions made here: they need no telling."""
        self._paper = session.progress

    def attend(self, *, after: int = 0, decided: str = "", moved: bool = True) -> int:
        """Follow the job to its end, or to where only a person brings it on; return the exit code.

        The arguments are those of :func:`perdure.cli.follow.follow`.
        """
        self._position = after
        try:
            self._follow(decided, moved=moved)
            return self._go_on()
        except KeyboardInterrupt:
            return self._detach()
        except BrokenPipeError as left:
            # `perdure run release | head`: the job goes on, and 0 would say that it was done.
            raise ReaderLeft(exit_code(self.job.phase)) from left

    def _go_on(self) -> int:
        while self.job.phase is JobPhase.waiting:
            review = read_plan(self._door, self.job.digest)
            print_plan(self._paper, review)
            decided = self._ask(review) if self._session.may_ask else False
            if not decided:
                return self._leave(review)
            self._follow(review.digest)
        return self._end()

    def _follow(self, decided: str = "", *, moved: bool = True) -> None:
        self.job, self._position = follow(
            self._door, self.job, self._paper, after=self._position, decided=decided, moved=moved, own=self.own
        )

    def _ask(self, review: Review) -> bool:
        """Ask until something was decided, here or elsewhere; false: the person left, or others are still needed."""
        letters = _letters(review)
        acts: dict[str, Callable[[Review], bool | None]] = {
            "a": self._approve,
            "d": self._diff,
            "e": self._edit,
            "c": self._changes,
            "r": self._reject,
            "l": lambda _: False,
        }
        while True:
            letter = self._ask_letter(review, letters)
            if letter is None:
                return True
            done = acts[letter](review)
            if done is not None:
                return done

    def _ask_letter(self, review: Review, letters: str) -> str | None:
        """Return a letter of ``letters``; ``None`` when the plan is no longer open."""
        untouched = "Nothing has changed yet. " if self._is_untouched(review) else ""
        question = [untouched, *choices(letters, WORDS)]
        while True:
            try:
                typed = ask(self._paper, question, lambda: self._is_open(review))
            except EOFError:
                self._paper.write("\n")
                return "l"
            if typed is None:
                self._paper.line(("Decided elsewhere meanwhile.", "warn"))
                return None
            letter = typed[:1].lower()
            if letter and letter in letters and WORDS[letter].startswith(typed.lower()):
                return letter
            self._paper.line((f"Type one of {', '.join(letters)}.", "dim"))

    def _is_untouched(self, review: Review) -> bool:
        return not any(view.state for view in review.effects)

    def _is_open(self, review: Review) -> bool:
        try:
            job = read_job(self._door, self.job.job_id)
        except Unreachable:
            # Perdure is being started again: the question stands, an answer is sent when it is back.
            return True
        return job.phase is JobPhase.waiting and job.digest == review.digest

    def _approve(self, review: Review) -> bool:
        return self._decide(review, "approve")

    def _diff(self, review: Review) -> None:
        lines = diff_lines(self._paper, review, self._door) if has_diff(review) else ["No file changes."]
        show_lines(self._paper, lines)

    def _edit(self, review: Review) -> bool | None:
        def send(changes: JsonDict) -> bool:
            return self._decide(review, "request_changes", changes=changes)

        done = edit_in_editor(self._door, review, send)
        if done is None:
            self._paper.line(("Nothing was edited.", "dim"))
        return done

    def _changes(self, review: Review) -> bool | None:
        comment = ask_text(self._paper, "What should change? ")
        return self._decide(review, "request_changes", comment=comment) if comment else None

    def _reject(self, review: Review) -> bool:
        return self._decide(review, "reject", comment=ask_text(self._paper, "Why? (Enter: no reason) "))

    def _decide(self, review: Review, kind: Kind, *, comment: str = "", changes: JsonDict | None = None) -> bool:
        try:
            answer = decide(self._door, review.digest, kind, comment=comment, changes=changes, may_ask=True)
        except Conflict as conflict:
            self._paper.line((conflict.message, "warn"))
            return True
        self.own.add(answer.decision_id)
        if answer.weighing.outcome == "pending":
            self._paper.line("Noted. Still needed: ", (", ".join(answer.weighing.missing), "warn"))
            return False
        return True

    def _leave(self, review: Review) -> int:
        short = review.digest[:SHORT]
        decide_here = "" if self._session.may_ask else f"  perdure approve {short}"
        self._paper.line(
            f"Waiting {deadline(review.expires_at)}. Survives restarts.  ",
            (f"perdure review {self.job.number}{decide_here}", "hint"),
        )
        return self._answer(codes.WAITING)

    def _detach(self) -> int:
        self._session.notes.line()  # the terminal has put ^C on the line
        self._session.notes.line(
            f"Detached. {self.job.name} goes on.  Come back: ", (f"perdure show {self.job.number}", "hint")
        )
        return self._answer(codes.DETACHED)

    def _end(self) -> int:
        return self._answer(say_end(self._paper, self._door, self.job))

    def _answer(self, code: int) -> int:
        if self._session.as_json:
            self._session.answer(self.job)
        return code


def _letters(review: Review) -> str:
    undoes = review.job.template == "undo"
    wanted = {
        "a": True,
        "d": has_diff(review),
        "e": bool(review.rule.editable) and not undoes,
        "c": not undoes,
        "r": True,
        "l": True,
    }
    return "".join(letter for letter, is_wanted in wanted.items() if is_wanted)
