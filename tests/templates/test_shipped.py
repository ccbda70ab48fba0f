"""Every shipped template reads, and says what its example promised."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.catalog import Catalog, load_entry
from perdure.effects.registry import default_effects
from perdure.policy.templates import check_template, parse_template
from perdure.rules.registry import default_rules
from perdure.tools.registry import default_tools
from tests.templates.texts import SHIPPED

FILES = sorted(SHIPPED.glob("*.yaml"))


def test_there_are_shipped_templates() -> None:
    """The tests below have something to read."""
    assert "release" in {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_template_runs_with_what_is_shipped(path: Path) -> None:
    """Its rules and effects exist, take these arguments, and nothing irreversible goes without an approval."""
    rules = {name: rule.shape for name, rule in default_rules().items()}
    effects = {kind: effect.always_reversible for kind, effect in default_effects().items()}
    entry = Catalog(SHIPPED).find(path.stem, Path("/"))
    load_entry(
        entry, check=lambda template: check_template(template, rules=rules, effects=effects, tools=default_tools())
    )


def test_the_release_template_asks_before_it_publishes() -> None:
    """Publishing is irreversible and behind a maintainer; the requester may be that maintainer, for seven days."""
    template = parse_template((SHIPPED / "release.yaml").read_text(), path="release.yaml")
    assert [step.id for step in template.apply] == [
        "commit",
        "tag",
        "push",
        "merge",
        "tag-merged",
        "publish",
        "announce",
    ]
    assert all(step.irreversible for step in template.apply if step.id in ("merge", "publish"))
    assert [(rule.group, rule.count) for rule in template.review.approvals] == [("maintainers", 1)]
    assert template.review.requester_may_approve is True
    assert template.review.expires.after.days == 7
    assert template.asks_models == (True, False)
    assert [step.optional for step in template.analyze.steps.values() if step.prompt] == [True]
