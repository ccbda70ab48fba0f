"""Forges and indexes: exactly the approved tree, exactly our files, tokens only to approved hosts, no green nothing."""

from __future__ import annotations

from tests.promises.kept import Kept

APPROVED = "What was approved is what is applied."
ONCE = "At most once, and known."
INVERSE = "No effect without a declared inverse: only what is ours is taken back."
AUTHORITY = "Least authority: secrets reach only the activity that uses them, and hosts that the plan names."

_ON_REQUEST = "tests/effects/test_forge_pull_request.py"
_ON_RELEASE = "tests/effects/test_forge_release.py"
_ON_PUBLISHED = "tests/effects/test_published.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        APPROVED,
        "perdure/effects/git_target.py",
        '"rev-list", "--first-parent", "--reverse"',
        '"rev-list", "--reverse"',
        f"{_ON_REQUEST}::test_a_merge_over_somebody_elses_commit_has_lapsed",
    ),
    Kept(
        APPROVED,
        "perdure/effects/git_target.py",
        "            if found == tree:\n",
        "            if found:\n",
        f"{_ON_REQUEST}::test_merged_with_another_change_has_lapsed",
    ),
    Kept(
        APPROVED,
        "perdure/effects/github_release.py",
        '        return bool(digest == f"sha256:{blob.sha256}")\n',
        "        return True\n",
        f"{_ON_RELEASE}::test_another_asset_of_the_name_is_not_ours",
    ),
    Kept(
        ONCE,
        "perdure/effects/shell_run.py",
        "            if probe.found is not Found.done:\n                raise EffectUnknown(",
        "            if False:\n                raise EffectUnknown(",
        f"{_ON_PUBLISHED}::test_a_command_that_ends_well_and_publishes_nothing_is_not_green",
    ),
    Kept(
        ONCE,
        "perdure/effects/github_release.py",
        '            if found is None or found.get("state") != "uploaded":\n',
        "            if found is None:\n",
        f"{_ON_RELEASE}::test_an_upload_that_is_cut_is_sent_again",
    ),
    Kept(
        INVERSE,
        "perdure/effects/forge_pull_request.py",
        '        if target.refs().get(body["branch"]) == body["commit"]:\n',
        "        if True:\n",
        f"{_ON_REQUEST}::test_withdrawing_closes_what_is_open_and_ours",
    ),
    Kept(
        INVERSE,
        "perdure/effects/forge_release.py",
        '        if seen.standing is Standing.foreign or (body["gone"] and seen.strangers):\n',
        "        if False:\n",
        f"{_ON_RELEASE}::test_a_release_that_others_added_to_is_not_deleted",
    ),
    Kept(
        AUTHORITY,
        "perdure/effects/http_call.py",
        "        if 300 <= answer.status < 400:\n",
        "        if False:\n",
        f"{_ON_RELEASE}::test_a_redirect_leads_the_token_nowhere",
    ),
    Kept(
        AUTHORITY,
        "perdure/effects/http_call.py",
        '    if carries_secret and parts.scheme == "http" and not is_loopback(parts.hostname):\n',
        "    if False:\n",
        f"{_ON_RELEASE}::test_place_follows_from_the_remote",
    ),
    Kept(
        APPROVED,
        "perdure/effects/forge_release.py",
        "            raise look_failed(error) from error\n",
        "            return [error.message]\n",
        "tests/effects/test_forge_release.py::test_wrong_token_says_what_to_do",
    ),
    Kept(
        APPROVED,
        "activities/effects.py",
        "            if by := self._decisions.cancelled_by(question.job_id):\n",
        '            if by := "":\n',
        "tests/activities/test_looking.py::test_a_cancelled_job_waits_for_no_server",
    ),
)
