"""Least authority at the pages: a session, a form's nonce, and that no link decides."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "Least authority: a page decides by its own form, once, for one session and one plan."

_SESSIONS = "perdure/api/pages/sessions.py"
_SIGNING = "perdure/api/pages/signing_in.py"
_TESTS = "tests/api/test_pages.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        _SESSIONS,
        "        return self.forms.pop(nonce)\n",
        "        return form\n",
        f"{_TESTS}::test_form_is_good_for_one_answer",
    ),
    Kept(
        PROMISE,
        _SESSIONS,
        "        if form is None or form.about != about:\n",
        "        if form is None:\n",
        f"{_TESTS}::test_form_is_good_for_its_plan_and_its_session",
    ),
    Kept(
        PROMISE,
        _SESSIONS,
        "        if session is None or session.is_secure != is_secure:\n",
        "        if session is None:\n",
        f"{_TESTS}::test_session_of_tls_counts_only_as_that",
    ),
    Kept(
        PROMISE,
        _SIGNING,
        "            if token is not None:\n                return SignedIn",
        "            if True:\n                return SignedIn",
        f"{_TESTS}::test_revoked_token_ends_its_sessions_at_once",
    ),
    Kept(
        PROMISE,
        _SIGNING,
        "    if not origin:\n",
        "    if False:\n",
        f"{_TESTS}::test_pages_answer_to_their_host_and_origin_alone",
    ),
    Kept(
        PROMISE,
        _SIGNING,
        '    return path if _PLACES.fullmatch(path) else "/"\n',
        "    return path\n",
        f"{_TESTS}::test_signing_in_leads_nowhere_else",
    ),
    Kept(
        PROMISE,
        "perdure/api/pages/answers.py",
        "\"default-src 'none'; style-src",
        '"style-src',
        f"{_TESTS}::test_every_page_forbids_scripts_frames_and_keeping",
    ),
    Kept(
        PROMISE,
        "perdure/api/pages/rendering.py",
        "        return visible(value) if isinstance(value, str)",
        "        return value if isinstance(value, str)",
        f"{_TESTS}::test_plan_is_shown_whole",
    ),
)
