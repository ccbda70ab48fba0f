"""Least authority: doors that know who asks, a sandbox without a way out, git without the repository's programs."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "Least authority: deny by default, and Temporal carries ids, never authority."

_DOORS = "perdure/api/doors.py"
_SANDBOX = "perdure/workspace/sandbox.py"
_GIT = "perdure/workspace/git_process.py"
_ON_DOORS = "tests/api/test_doors.py"
_BUBBLEWRAP = "perdure/workspace/bubblewrap.py"
_ON_SANDBOX = "tests/workspace/test_sandbox.py"
_ON_ESCAPES = "tests/hostile/test_escapes.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        _DOORS,
        '        if len(headers.getlist("host")) != 1 or headers["host"] not in self._hosts:\n',
        "        if False:\n",
        f"{_ON_DOORS}::test_another_host_name_is_not_served",
    ),
    Kept(
        PROMISE,
        _DOORS,
        '        if any(origin not in self._origins for origin in headers.getlist("origin")):\n',
        "        if False:\n",
        f"{_ON_DOORS}::test_a_page_of_another_origin_is_turned_away",
    ),
    Kept(
        PROMISE,
        _DOORS,
        '    if (has_body or kind) and kind != "application/json":\n',
        "    if False:\n",
        f"{_ON_DOORS}::test_a_body_is_json_or_refused",
    ),
    Kept(
        PROMISE,
        "perdure/store/access.py",
        "tokens.c.sha256 == _hash(text), tokens.c.revoked_at.is_(None))\n",
        "tokens.c.sha256 == _hash(text))\n",
        "tests/store/test_access.py::test_a_revoked_token_is_gone_at_once",
    ),
    Kept(
        PROMISE,
        "perdure/api/server.py",
        "            if found != uid:\n",
        "            if False:\n",
        f"{_ON_DOORS}::test_a_process_of_another_uid_is_hung_up_on",
    ),
    Kept(
        PROMISE,
        _BUBBLEWRAP,
        '"--unshare-ipc", "--unshare-net", ',
        '"--unshare-ipc", ',
        f"{_ON_SANDBOX}::test_command_reaches_no_network_and_no_socket",
    ),
    Kept(
        PROMISE,
        _BUBBLEWRAP,
        '"--hostname", "sandbox", "--cap-drop", "ALL"]',
        '"--hostname", "sandbox", "--cap-drop", "ALL", "--ro-bind", "/root", "/root", "--ro-bind", "/etc", "/etc"]',
        f"{_ON_SANDBOX}::test_command_sees_no_file_of_the_machine",
    ),
    Kept(
        PROMISE,
        _BUBBLEWRAP,
        '"--die-with-parent", ',
        "",
        f"{_ON_SANDBOX}::test_command_dies_with_its_worker",
    ),
    Kept(
        PROMISE,
        _BUBBLEWRAP,
        "        *(part for name, value in view.env.items() for part in",
        "        *(part for name, value in {**os.environ, **view.env}.items() for part in",
        f"{_ON_SANDBOX}::test_command_sees_no_environment_of_ours",
    ),
    Kept(
        PROMISE,
        _BUBBLEWRAP,
        '"--seccomp", str(rules), "--"]',
        '"--"]',
        f"{_ON_ESCAPES}::test_escape_works_unboxed_and_not_inside",
    ),
    Kept(
        PROMISE,
        _SANDBOX,
        '"sh", *words], OUTSIDE, ',
        '"sh", *words], {**OUTSIDE, **(env or {})}, ',
        "tests/hostile/test_left_behind.py::test_environment_of_a_command_means_nothing_outside",
    ),
    Kept(
        PROMISE,
        _SANDBOX,
        "processes.objection(pgid) or disk.objection()",
        "processes.objection(pgid)",
        "tests/hostile/test_bombs.py::test_bomb_meets_a_bound",
    ),
    Kept(
        PROMISE,
        _GIT,
        '    return [git_program(), f"--git-dir={git_dir}", "--no-pager", *hardened, *args]\n',
        '    return [git_program(), "--no-pager", *args]\n',
        "tests/hostile/test_hostile_repository.py::test_repository_inside_a_workspace_is_never_discovered",
    ),
    Kept(
        PROMISE,
        "perdure/workspace/view.py",
        "        write_git_dir(folder, object_format=origin.object_format, head=origin.head, settings=settings)\n",
        "        write_git_dir(folder, object_format=origin.object_format, head=origin.head, settings=settings)\n"
        '        (folder / "config").unlink()\n'
        '        (folder / "config").symlink_to(origin.common_dir / "config")\n',
        "tests/hostile/test_hostile_repository.py::test_reading_runs_nothing",
    ),
    Kept(
        PROMISE,
        "perdure/effects/shell_run.py",
        '            output = output.replace(value.encode(), b"[secret]")\n',
        "            pass\n",
        "tests/effects/test_shell_run.py::test_secret_reaches_the_command_and_nothing_else",
    ),
)
