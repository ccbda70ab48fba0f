"""What holds an agent: permissions and the dial, budgets, what it can reach, prohibitions that survive."""

from __future__ import annotations

from tests.promises.kept import Kept

AUTHORITY = "Least authority: an agent does what permissions and the dial allow, and reaches nothing else."
COST = "Cost is capped: budgets are reserved before a call, unknown counts as a stop."
APPROVED = "What was approved is what is applied."
PROHIBITIONS = "Prohibitions survive: what is pinned is in every request."

_PERMISSIONS = "perdure/policy/permissions.py"
_DIAL = "perdure/policy/dial.py"
_BUDGETS = "perdure/policy/budgets.py"
_CONTEXT = "perdure/policy/context.py"
_READING = "perdure/workspace/reading.py"
_PLACES = "perdure/tools/places.py"
_ADDRESSES = "perdure/tools/addresses.py"
_HTTP = "perdure/tools/http.py"
_LINKS = "perdure/tools/links.py"
_REGISTRY = "perdure/tools/registry.py"
_STANDING = "perdure/policy/standing.py"
_ON_STANDING = "tests/policy/test_standing.py"
_ON_PERMISSIONS = "tests/policy/test_permissions.py"
_ON_DIAL = "tests/policy/test_dial.py"
_ON_BUDGETS = "tests/policy/test_budgets.py"
_ON_HTTP = "tests/tools/test_http.py"
_ON_READING = "tests/tools/test_files_read.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        AUTHORITY,
        _PERMISSIONS,
        '    return CallVerdict(decision="deny", rule=BY_DEFAULT, reason=reason)\n',
        '    return CallVerdict(decision="ask", rule=BY_DEFAULT, reason=reason)\n',
        f"{_ON_PERMISSIONS}::test_what_no_rule_speaks_about_is_denied",
    ),
    Kept(
        AUTHORITY,
        _PERMISSIONS,
        "    for decision in reversed(_DECISIONS):\n",
        "    for decision in _DECISIONS:\n",
        f"{_ON_PERMISSIONS}::test_a_denial_goes_before_every_allowance",
    ),
    Kept(
        AUTHORITY,
        _PERMISSIONS,
        "    lists = (question.permissions, *question.above)\n",
        "    lists = (question.permissions,)\n",
        f"{_ON_PERMISSIONS}::test_the_strictest_list_holds",
    ),
    Kept(
        AUTHORITY,
        _PERMISSIONS,
        "        if covers(denial, question):\n",
        "        if False:\n",
        f"{_ON_PERMISSIONS}::test_a_denied_thing_is_denied_in_other_words",
    ),
    Kept(
        AUTHORITY,
        "activities/tools.py",
        '            "marks": marks_of(target),\n',
        '            "marks": marks_of(shorten(target)),\n',
        "tests/agents/test_asking.py::test_denied_long_target_is_remembered_whole",
    ),
    Kept(
        AUTHORITY,
        "perdure/policy/template_tools.py",
        "        if name not in tools:\n",
        "        if False:\n",
        "tests/templates/test_checking.py::test_what_cannot_run_is_refused_when_loaded",
    ),
    Kept(
        AUTHORITY,
        "activities/tools.py",
        "            verdict = self._decide(question, call, record, tool, spec)\n",
        "            verdict = self._decide(question, part, record, tool, spec)\n",
        "tests/agents/test_approvals.py::test_edited_call_is_judged_again_and_runs_as_edited",
    ),
    Kept(
        AUTHORITY,
        _STANDING,
        '    if (scope.tool, scope.tool_digest) != (body.get("tool"), body.get("tool_digest")):\n',
        "    if False:\n",
        f"{_ON_STANDING}::test_what_stands_reaches_no_further_than_its_scope",
    ),
    Kept(
        AUTHORITY,
        _STANDING,
        "    gone = {revoked_by(word) for word in words}\n",
        "    gone = set[str]()\n",
        f"{_ON_STANDING}::test_what_was_revoked_lets_nothing_go",
    ),
    Kept(
        AUTHORITY,
        "perdure/store/approvals.py",
        "    return Counter(map(use_of, connection.execute(query).scalars()))\n",
        "    return Counter()\n",
        "tests/store/test_approvals.py::test_each_use_is_counted_once_and_no_more_often_than_said",
    ),
    Kept(
        AUTHORITY,
        "perdure/workspace/held.py",
        "        (kept if may and _copy_over(copy, root, path, _kind(after, path)) else dropped).append(text)\n",
        "        (kept if _copy_over(copy, root, path, _kind(after, path)) else dropped).append(text)\n",
        "tests/tools/test_shell.py::test_command_changes_only_what_the_step_may",
    ),
    Kept(
        AUTHORITY,
        "activities/call_secrets.py",
        "        texts = {part: text.replace(value, _mark(name)) for part, text in texts.items()}\n",
        "        pass\n",
        "tests/agents/test_tools.py::test_secrets_of_a_tool_are_left_nowhere",
    ),
    Kept(
        AUTHORITY,
        _REGISTRY,
        "    if effects.index(tools[fallback].spec.effect_class) > effects.index(tool.spec.effect_class):\n",
        "    if False:\n",
        "tests/tools/test_decorator.py::test_package_in_another_version_or_without_tools_is_refused",
    ),
    Kept(
        AUTHORITY,
        _PERMISSIONS,
        "    of_all = any if guards else all\n",
        "    of_all = any\n",
        f"{_ON_PERMISSIONS}::test_an_allowance_covers_every_target_and_a_denial_only_one",
    ),
    Kept(
        AUTHORITY,
        _DIAL,
        "    bounds = [dial, ceiling] + ([] if has_sandbox else [Dial.propose])\n",
        "    bounds = [dial, ceiling]\n",
        f"{_ON_DIAL}::test_the_ceiling_and_the_sandbox_bound_the_dial",
    ),
    Kept(
        AUTHORITY,
        _DIAL,
        "    if not decided:\n",
        "    if False:\n",
        f"{_ON_DIAL}::test_turning_up_needs_a_decision_a_ceiling_and_a_sandbox",
    ),
    Kept(
        AUTHORITY,
        _READING,
        "_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC\n",
        "_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC\n",
        f"{_ON_READING}::test_no_link_is_followed",
    ),
    Kept(
        AUTHORITY,
        _READING,
        '    if b"\\0" in path or any(part in (b"", b"..") or part.lower() == b".git" for part in parts):\n',
        '    if b"\\0" in path or any(part == b"" for part in parts):\n',
        f"{_ON_READING}::test_path_that_leaves_the_workspace_is_refused",
    ),
    Kept(
        AUTHORITY,
        _PLACES,
        "    if context.paths and not any(glob_matches(pattern, text) for pattern in context.paths):\n",
        "    if False:\n",
        "tests/tools/test_files_write.py::test_only_paths_of_the_step_are_changed",
    ),
    Kept(
        AUTHORITY,
        _ADDRESSES,
        "    inner = [str(address) for address in addresses if not is_public(address)]\n",
        "    inner: list[str] = []\n",
        f"{_ON_HTTP}::test_name_of_an_inner_address_is_refused",
    ),
    Kept(
        AUTHORITY,
        _ADDRESSES,
        "        if any(not is_public(inner) for inner in _carried(address)):\n            return False\n",
        "",
        f"{_ON_HTTP}::test_name_of_an_inner_address_is_refused",
    ),
    Kept(
        AUTHORITY,
        _HTTP,
        "        refuse_host(link, context.hosts)\n",
        "",
        f"{_ON_HTTP}::test_host_that_is_not_allowed_is_not_even_resolved",
    ),
    Kept(
        AUTHORITY,
        "perdure/tools/http_wire.py",
        "        return _Stream(self._connect(self._address, port, min(self._bounds.left(), 10.0)), self._bounds)\n",
        "        return _Stream(self._connect(host, port, min(self._bounds.left(), 10.0)), self._bounds)\n",
        f"{_ON_HTTP}::test_name_that_changes_its_address_gains_nothing",
    ),
    Kept(
        AUTHORITY,
        _LINKS,
        '    if "@" in parts.netloc:\n',
        "    if False:\n",
        f"{_ON_HTTP}::test_every_redirect_is_judged_like_the_first_request",
    ),
    Kept(
        AUTHORITY,
        "perdure/entries.py",
        "    if installed != version:\n",
        "    if False:\n",
        "tests/tools/test_decorator.py::test_package_in_another_version_or_without_tools_is_refused",
    ),
    Kept(
        AUTHORITY,
        "perdure/tools/git.py",
        "        writable=False,\n",
        "        writable=True,\n",
        "tests/tools/test_shell.py::test_git_only_reads_and_is_held_by_the_sandbox",
    ),
    Kept(
        AUTHORITY,
        "perdure/policy/delegation.py",
        "    missing = [tool for tool in tools if tool not in has.tools]\n",
        "    missing: list[str] = []\n",
        "tests/policy/test_delegation.py::test_a_grant_only_shrinks",
    ),
    Kept(
        AUTHORITY,
        "perdure/policy/delegation.py",
        "    outside = [path for path in paths if not is_within(path, has.paths)]\n",
        "    outside: list[str] = []\n",
        "tests/policy/test_delegation.py::test_a_grant_only_shrinks",
    ),
    Kept(
        AUTHORITY,
        "perdure/rules/release/wording.py",
        "    if added:\n",
        "    if False:\n",
        "tests/rules/test_wording.py::test_facts_may_not",
    ),
    Kept(
        AUTHORITY,
        "perdure/rules/release/wording.py",
        "    return not entry.edited_by and not entry.id.startswith(_BY_HAND)\n",
        "    return True\n",
        "tests/rules/test_wording.py::test_what_a_person_wrote_is_never_reworded",
    ),
    Kept(
        COST,
        _BUDGETS,
        "        if limit and getattr(after, field) > limit:\n",
        "        if limit and used > limit:\n",
        f"{_ON_BUDGETS}::test_a_question_is_asked_only_when_its_dearest_answer_fits",
    ),
    Kept(
        COST,
        _BUDGETS,
        "    if reserved.unknown_cost and limits.cost_microdollars:\n",
        "    if False:\n",
        f"{_ON_BUDGETS}::test_an_unknown_price_is_a_stop_where_cost_is_limited",
    ),
    Kept(
        COST,
        _BUDGETS,
        "        taken = getattr(spent, field) + sum(getattr(one, field) for one in outstanding)\n",
        "        taken = getattr(spent, field)\n",
        f"{_ON_BUDGETS}::test_a_child_gets_what_is_free_at_its_parent",
    ),
    Kept(
        PROHIBITIONS,
        _CONTEXT,
        "    return [*given.charter, given.goal, *given.records, *([given.summary] if given.summary else [])]\n",
        "    return [given.goal, *given.records, *([given.summary] if given.summary else [])]\n",
        "tests/policy/test_context.py::test_prohibitions_are_there_however_long_the_transcript",
    ),
    Kept(
        PROHIBITIONS,
        "perdure/policy/records.py",
        "    return (*said, *_open_questions(messages), *filter(None, map(_decision, calls)))\n",
        "    return (*_open_questions(messages), *filter(None, map(_decision, calls)))\n",
        "tests/policy/test_records.py::test_what_people_said_is_kept_word_for_word",
    ),
    Kept(
        COST,
        "perdure/store/summaries.py",
        "            connection.execute(update(agents).where(agents.c.agent_id == agent_id).values(**grown))\n",
        "",
        "tests/store/test_summaries.py::test_what_a_summary_may_cost_is_counted_before_it_is_made",
    ),
    Kept(
        APPROVED,
        "activities/checkpointing.py",
        "        if not earlier or earlier[-1].number != wanted.seen or (target is None and wanted.to):\n",
        "        if not earlier:\n",
        "tests/agents/test_checkpoints.py::test_rewind_binds_to_what_was_seen",
    ),
    Kept(
        APPROVED,
        "perdure/workspace/checkpoints.py",
        "            if found != old:\n",
        "            if False:\n",
        "tests/workspace/test_checkpoints.py::test_newer_work_is_not_lost_by_going_back",
    ),
)
