"""What a thread remembers of its reviewers: proposed again as theirs, never silently, and only what they signed."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "What reviewers did is proposed again as theirs, said, and counts only when they signed it."

_REMEMBERED = "tests/rules/test_remembered.py"
_LIVE = "tests/crash/test_remembered.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        "activities/memory.py",
        "word for word in self._decisions.on_plan(row.digest) if word.at < before",
        "one.decision for one in self._ledger.decisions(digest=row.digest) if one.decision.at < before",
        "tests/activities/test_memory.py::test_only_what_was_signed_is_remembered",
    ),
    Kept(
        PROMISE,
        "activities/plans.py",
        "    return sorted(remembered | {edit.by for edit in reader.edits})\n",
        "    return sorted({edit.by for edit in reader.edits})\n",
        f"{_LIVE}::test_an_override_is_proposed_again_as_its_makers",
    ),
    Kept(
        PROMISE,
        "perdure/rules/release/recalled.py",
        "    recalled.findings.append(told)\n",
        "    pass\n",
        f"{_REMEMBERED}::test_reworded_moved_and_dropped_entries_are_so_again",
    ),
    Kept(
        PROMISE,
        "perdure/rules/release/recalled.py",
        "    if situation.is_exactly(override.seen):\n",
        "    if situation.is_same_range(override.seen):\n",
        f"{_REMEMBERED}::test_a_version_is_proposed_again_for_exactly_what_it_was_chosen_for",
    ),
    Kept(
        PROMISE,
        "perdure/rules/release/packages/remembering.py",
        '        return [f"{one.name}: {finding}" for finding in recalled.findings]\n',
        "        return []\n",
        "tests/rules/test_packages_remembered.py::test_each_package_s_entries_are_again_as_they_were_made",
    ),
    Kept(
        PROMISE,
        "perdure/rules/release/choice.py",
        "    if problem or wish.is_person or not numbers.leaves_initial_development(wish.version):\n",
        "    if True:\n",
        "tests/rules/test_initial_development.py::test_evidence_does_not_end_initial_development",
    ),
    Kept(
        PROMISE,
        "perdure/rules/release/type_map.py",
        "    return not line.is_set and habit.step != line.step\n",
        "    return habit.step != line.step\n",
        "tests/rules/test_type_map.py::test_a_persons_line_stands_before_tags_and_confirmations",
    ),
    Kept(
        PROMISE,
        "perdure/deciding.py",
        "            raise UserError(f\"{' '.join(problems)} Nothing was recorded.\")\n",
        "            pass\n",
        f"{_LIVE}::test_an_edit_that_breaks_a_rule_costs_no_round",
    ),
)
