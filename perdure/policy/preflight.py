"""What a schedule's fires will need from people, and whether its template says what an absence means. Pure."""

from __future__ import annotations

from datetime import timedelta

from perdure.contracts.template import Template


def list_approvals(template: Template) -> list[str]:
    """Return what each fire will ask people for, in the order in which it may."""
    found = []
    if template.asks_models[1]:
        found += [
            f"draft step {number}: its agent may ask a person, and stops after {_days(step.limits.idle)} without answer"
            for number, step in enumerate(template.draft.steps if template.draft else [], 1)
            if step.agent
        ]
    rule = template.review.when_scheduled
    for needed in template.review.approvals:
        found.append(
            f"review: {needed.count} from {needed.group}; nobody answers: {rule.nobody_answers}; "
            f"the plan of a later fire {'takes its place' if rule.newer_plan == 'supersedes' else 'waits beside it'}"
        )
    return found


def find_silent_gates(template: Template) -> list[str]:
    """Return the gates that do not say what happens when nobody answers, each with what to write."""
    review = template.review
    if not review.approvals:
        return []
    said = review.when_scheduled.model_fields_set if "when_scheduled" in review.model_fields_set else set()
    if "nobody_answers" in said:
        return []
    return ["`review:` needs `when_scheduled: {nobody_answers: park}` (or skip, deny)"]


def _days(span: timedelta) -> str:
    hours = span // timedelta(hours=1)
    return f"{hours // 24} days" if hours >= 48 else f"{hours} hours"
