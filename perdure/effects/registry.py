"""The kinds of effect that there are, by name."""

from __future__ import annotations

from perdure.effects.base import Effect
from perdure.effects.files_write import FilesWrite
from perdure.effects.forge_pull_request import ForgePullRequest
from perdure.effects.forge_release import ForgeRelease
from perdure.effects.git_commit import GitCommit
from perdure.effects.git_push import GitPush
from perdure.effects.git_tag import GitTag
from perdure.effects.git_tag_merged import GitTagMerged
from perdure.effects.shell_run import ShellRun


def default_effects() -> dict[str, Effect]:
    """Return every shipped effect by its kind."""
    effects: list[Effect] = [GitCommit(), GitTag(), GitPush(), FilesWrite(), ShellRun()]
    effects += [ForgePullRequest(), GitTagMerged(), ForgeRelease()]
    return {effect.kind: effect for effect in effects}
