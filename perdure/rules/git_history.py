"""The source ``git.history``: what happened on this branch since its last release, and where its remote stands."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.contracts.base import JsonDict
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_branch import find_branch, list_tags, refuse_unready
from perdure.rules.git_commits import Commit, read_commits
from perdure.rules.git_past import read_past_releases, read_past_sections, read_pattern
from perdure.rules.git_remote import read_remote, refuse_behind
from perdure.rules.git_scopes import name_disagreements
from perdure.rules.git_tree import CommitTree, open_input, package_path
from perdure.rules.release.announced import begin_at_announced
from perdure.rules.release.habits import learn_habits
from perdure.rules.release.last_release import LastRelease, find_last_release, refuse_unknown_releases
from perdure.rules.release.settings.find import find_settings
from perdure.rules.release.settings.model import ToolSettings
from perdure.rules.release.tags import parse_tag_form
from perdure.rules.release.versions import VersionScheme, find_scheme
from perdure.workspace.git import Repository
from perdure.workspace.refs import short_ref

NAME = "git.history"


def gather_history(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Read the branch's commits since its last release tag, newest first, a child before its parents.

    ``with``: ``repo``; optional ``path`` (one package), ``tag`` (form, default ``v{version}``), ``scheme``, ``branch``
    (default: the one checked out), ``remote`` and ``follow`` (a remote: where the branch is only behind its, the plan
    begins there); scheme and remote fall back to the job's inputs.

    Raises:
        UserError: the repository is not ready for a release; the message says what to do.
    """
    repository = open_input(arguments["repo"])
    path = package_path(repository, arguments.get("path"))
    form = parse_tag_form(str(arguments.get("tag") or "v{version}"))
    scheme = _pick_scheme(arguments, context)
    follow = str(arguments.get("follow") or "")
    ref, head = find_branch(repository, str(arguments.get("branch") or ""), follow)
    refuse_unready(repository)
    names = list_tags(repository)
    first_version = str(context.inputs.get("version") or "")
    settings = _read_settings(repository, head, path)
    said = (settings.tag, settings.file)
    last = find_last_release(repository, head, names, form, scheme, starts_anew=bool(first_version), said=said)
    remote = read_remote(repository, str(arguments.get("remote", context.inputs.get("remote", "origin")) or ""))
    refuse_behind(repository, remote, ref, head, follows=bool(follow), offered=_offer(context))
    refuse_unknown_releases(remote, names, last, form, scheme)
    past = read_past_releases(repository, names, last, form, scheme, path)
    sections = read_past_sections(repository, head, path) if past else {}
    habits = learn_habits(past, sections, settings.types)
    last, commits = begin_at_announced(
        last, read_commits(repository, head, since=last.commit, path=path), names, form, scheme
    )
    value: JsonDict = {
        "rule": NAME,
        "repository": str(repository.place),
        "path": path,
        "branch": short_ref(ref),
        "ref": ref,
        "head": head,
        "shallow": False,
        "tag_form": str(form),
        "last_tag": last.tag,
        "last_tag_commit": last.commit,
        "last_version": last.version,
        "last_candidate": last.candidate,
        "candidate_holds": _find_held(repository, head, last, commits),
        "first_release": not last.tag,
        "habits": habits.to_json(),
        "settings": settings.to_json(),
        "calendar": read_pattern(repository, names, form, scheme),
        "commits": [commit.to_json() for commit in commits],
        "tags": names,
        "remote": remote.name,
        "remote_url": remote.url,
        "remote_refs": remote.refs,
    }
    since = f"since {last.tag}" if last.tag else "and no release yet"
    plural = "" if len(commits) == 1 else "s"
    told = (_tell_followed(repository, ref, head, follow), last.finding, remote.finding)
    findings = [finding for finding in told if finding] + [*settings.findings]
    if path:
        every = read_commits(repository, head, since=last.commit)
        findings += name_disagreements(repository, head, path, commits, every)
    return RuleResult(value, f"{len(commits)} commit{plural} {since}", findings=findings)


def _offer(context: RuleContext) -> str:
    """The input of the job, where it has that, with which a plan leaves the branch alone."""
    return "way=pull-request" if "way" in context.inputs else ""


def _tell_followed(repository: Repository, ref: str, head: str, follow: str) -> str:
    ours, branch = repository.resolve(ref) or head, short_ref(ref)
    if ours == head:
        return ""
    place = f"{follow}/{branch} ({head[:7]})"
    return f"{branch} ({ours[:7]}) is behind {place}: this plan begins there, and your branch and checkout stay."


def _find_held(repository: Repository, head: str, last: LastRelease, commits: Sequence[Commit]) -> list[str]:
    """Short ids of those commits that the first pre-release of the line since the last final one holds."""
    if not last.line_commit:
        return []
    since = set(repository.read("rev-list", head, f"^{last.line_commit}").decode("ascii").split())
    return [commit.short for commit in commits if commit.id not in since]


def _read_settings(repository: Repository, head: str, path: str) -> ToolSettings:
    """What the project set for its own release tools, in the folder of the package and at the root."""
    root = CommitTree(repository, head, "")
    return find_settings(root, CommitTree(repository, head, path) if path else root)


def _pick_scheme(arguments: JsonDict, context: RuleContext) -> VersionScheme:
    return find_scheme(str(arguments.get("scheme") or context.inputs.get("scheme") or "semver"))


RULE = Rule(
    name=NAME,
    rule_class="source",
    run=gather_history,
    needs=frozenset({"repo"}),
    takes=frozenset({"path", "tag", "scheme", "branch", "remote", "follow"}),
    about="Commits of a branch since its last release tag, and what its remote has.",
)
