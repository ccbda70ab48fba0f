"""The map of commands: name → where it is and its short help. Printing the help imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """One command that is imported when it is called."""

    target: str
    """``module:attribute``."""
    help: str
    """One line for the list of commands."""


Sections = Mapping[str, Mapping[str, Entry]]
"""Title of a section → its commands by name, in the order of the help."""

COMMANDS: Sections = {
    "Start": {
        "run": Entry("perdure.cli.run:run", "Start a job from a template and follow it."),
        "schedule": Entry("perdure.cli.schedule:schedule", "Start jobs by the clock, again and again."),
        "demo": Entry("perdure.cli.demo:demo", "See a release survive kill -9, and be taken back."),
    },
    "Decide": {
        "review": Entry("perdure.cli.review:review", "Show a plan whole: effects, undo, checks, diff."),
        "approve": Entry("perdure.cli.decide:approve", "Approve exactly one plan, by its digest."),
        "reject": Entry("perdure.cli.decide:reject", "Reject a plan: nothing of it happens."),
        "request-changes": Entry("perdure.cli.decide:request_changes", "Send a plan back to draft with a comment."),
        "edit": Entry("perdure.cli.edit:edit", "Change a plan, or a call of an agent, and get a new one."),
        "withdraw": Entry("perdure.cli.decide:withdraw", "Take your approval back before it is used."),
        "break-glass": Entry("perdure.cli.decide:break_glass", "Let a plan happen alone, in an emergency."),
        "resolve": Entry("perdure.cli.resolve:resolve", "Say what became of an effect nobody can tell."),
        "approvals": Entry("perdure.cli.approvals:approvals", "Let calls of agents go without asking, until a time."),
    },
    "Steer": {
        "say": Entry("perdure.cli.steer:say", "Say something to the agent at work on a job."),
        "amend": Entry("perdure.cli.steer:amend", "Change what the agent is to do."),
        "pause": Entry("perdure.cli.steer:pause", "Let the agent wait."),
        "resume": Entry("perdure.cli.steer:resume", "Let a paused agent or plan go on."),
        "dial": Entry("perdure.cli.steer:dial", "Turn how much the agent may do alone."),
        "more": Entry("perdure.cli.steer:more", "Give an agent more than its limits."),
    },
    "Follow": {
        "jobs": Entry("perdure.cli.jobs:jobs", "List jobs and where they are."),
        "show": Entry("perdure.cli.show:show", "Show one job, live, stage by stage."),
        "logs": Entry("perdure.cli.logs:logs", "Print a job's records from the ledger."),
        "checkpoints": Entry("perdure.cli.checkpoints:checkpoints", "List what an agent's calls changed, one by one."),
        "diff": Entry("perdure.cli.checkpoints:diff", "Show what changed between two checkpoints."),
        "artifacts": Entry("perdure.cli.artifacts:artifacts", "List or fetch what a job's stages gave."),
        "audit": Entry("perdure.cli.audit:audit", "Check the evidence; export and verify it offline."),
    },
    "Threads": {
        "threads": Entry("perdure.cli.threads:threads", "What each lasting workspace has done; let one rest."),
    },
    "Take back": {
        "rewind": Entry("perdure.cli.checkpoints:rewind", "Take an agent's workspace back to a checkpoint."),
        "undo": Entry("perdure.cli.undo:undo", "Plan the way back of a finished job."),
        "cancel": Entry("perdure.cli.undo:cancel", "Stop a job; what it did is taken back."),
    },
    "Operate": {
        "up": Entry("perdure.cli.operate:up", "Start Perdure in the background."),
        "down": Entry("perdure.cli.operate:down", "Stop it; open jobs wait and go on later."),
        "status": Entry("perdure.cli.operate:status", "Say whether it runs and where its data is."),
        "doctor": Entry("perdure.cli.operate:doctor", "Check this machine and say what to do."),
        "models": Entry("perdure.cli.models:models", "List and test models; serve a scripted one."),
        "templates": Entry("perdure.cli.templates:templates", "List, show, write, validate and trust templates."),
        "tools": Entry("perdure.cli.tools:tools", "List the tools that agents may be given."),
        "effects": Entry("perdure.cli.effects:effects", "List the kinds of change that templates may name."),
        "messages": Entry("perdure.cli.messages:messages", "What people were told, and what did not arrive."),
        "people": Entry("perdure.cli.people:people", "Say who decides today; delegate for a while."),
        "tokens": Entry("perdure.cli.tokens:tokens", "Make and revoke tokens for other clients."),
        "key": Entry("perdure.cli.key:key", "Protect the key that signs your decisions."),
        "completion": Entry("perdure.cli.completion:completion", "Print tab completion for your shell."),
        "help": Entry("perdure.cli.help:show_help", "Explain a command, or the exit codes."),
    },
}

TEMPLATES: Sections = {
    "Commands": {
        "list": Entry("perdure.cli.templates:list_templates", "List the templates that can be run here."),
        "show": Entry("perdure.cli.templates:show_template", "Show a template's inputs and text."),
        "new": Entry("perdure.cli.templates_new:new_template", "Write a runbook by questions."),
        "validate": Entry("perdure.cli.templates:validate_template", "Check a template file and say what is wrong."),
        "schema": Entry("perdure.cli.templates:print_schema", "Print the JSON schema for your editor."),
        "trust": Entry("perdure.cli.templates:trust_template", "Allow this repository's template to run."),
    }
}

SCHEDULE: Sections = {
    "Look": {
        "list": Entry("perdure.cli.schedule:list_schedules", "List schedules and how their last jobs ended."),
        "show": Entry("perdure.cli.schedule:show_schedule", "Show one: its fires, and those that were none."),
        "next": Entry("perdure.cli.schedule:show_next", "Show when it fires next, over both clock changes."),
    },
    "Make": {
        "add": Entry("perdure.cli.schedule_add:add_schedule", "Make a schedule of a template."),
        "edit": Entry("perdure.cli.schedule_add:edit_schedule", "Give a schedule other times, inputs or limits."),
        "delete": Entry("perdure.cli.schedule_words:delete_schedule", "End a schedule; its open jobs go on."),
    },
    "Steer": {
        "pause": Entry("perdure.cli.schedule_words:pause_schedule", "Let it rest, with a note saying why."),
        "resume": Entry("perdure.cli.schedule_words:resume_schedule", "Let it fire again, from the next time on."),
        "trigger": Entry("perdure.cli.schedule_words:trigger_schedule", "Start a job of it now."),
        "backfill": Entry("perdure.cli.schedule_words:backfill_schedule", "Run the fires of a past span, in order."),
    },
}

THREADS: Sections = {
    "Commands": {
        "list": Entry("perdure.cli.threads:list_threads", "List threads and what they did last."),
        "show": Entry("perdure.cli.threads:show_thread", "Tell a thread's history: jobs, deciders, leftovers."),
        "pause": Entry("perdure.cli.threads:pause_thread", "Start nothing new in it, with a note saying why."),
        "resume": Entry("perdure.cli.threads:resume_thread", "Let it start jobs again."),
        "archive": Entry("perdure.cli.threads:archive_thread", "Put away a thread that has ended its work."),
        "export": Entry("perdure.cli.thread_end:export_thread", "Write what is told of it into a file."),
        "delete": Entry("perdure.cli.thread_end:delete_thread", "Erase what its records say; the chain stays."),
    }
}

MESSAGES: Sections = {
    "Commands": {
        "list": Entry("perdure.cli.messages:list_messages", "List channels and messages, with how they fared."),
        "again": Entry("perdure.cli.messages:send_again", "Send a message now that did not arrive."),
        "test": Entry("perdure.cli.messages:try_channel", "Send a word to a channel."),
    }
}

TOOLS: Sections = {
    "Commands": {
        "list": Entry("perdure.cli.tools:list_tools", "List tools with what they may change."),
        "show": Entry("perdure.cli.tools:show_tool", "Show one tool: its arguments and definition."),
    }
}

APPROVALS: Sections = {
    "Commands": {
        "list": Entry("perdure.cli.approvals:list_approvals", "List what stands approved, and its uses."),
        "add": Entry("perdure.cli.approvals:add_approval", "Let calls like one that was asked about go."),
        "revoke": Entry("perdure.cli.approvals:revoke_approval", "Take a standing approval back."),
    }
}

EFFECTS: Sections = {
    "Commands": {
        "list": Entry("perdure.cli.effects:list_effects", "List kinds of effect and how they are undone."),
        "show": Entry("perdure.cli.effects:show_effect", "Show one kind: what a step of it takes."),
    }
}

TOKENS: Sections = {
    "Commands": {
        "list": Entry("perdure.cli.tokens:list_tokens", "List tokens, without their text."),
        "add": Entry("perdure.cli.tokens:add_token", "Make a token; its text is shown once."),
        "revoke": Entry("perdure.cli.tokens:revoke_token", "Make a token useless from now on."),
    }
}

PEOPLE: Sections = {
    "Commands": {
        "list": Entry("perdure.cli.people:list_people", "List people, policies and delegations."),
        "delegate": Entry("perdure.cli.people:delegate", "Let somebody decide in your place, until a time."),
        "end": Entry("perdure.cli.people:end_delegation", "Take a delegation of yours back."),
    }
}

KEY: Sections = {
    "Commands": {
        "show": Entry("perdure.cli.key:show_key", "Show the public keys of your decisions."),
        "passphrase": Entry("perdure.cli.key:change_passphrase", "Set, change or remove the passphrase."),
    }
}

MODELS: Sections = {
    "Commands": {
        "list": Entry("perdure.cli.models:list_models", "List the models of the settings."),
        "test": Entry("perdure.cli.models:test_model", "Ask a model one tiny question."),
        "serve-script": Entry("perdure.cli.models:serve_script", "Answer as a model would, by a script."),
    }
}

AUDIT: Sections = {
    "Commands": {
        "check": Entry("perdure.cli.audit:check", "Compare ledger, signatures, history and world."),
        "log": Entry("perdure.cli.account:log", "Tell who decided what, what ran, what was undone."),
        "export": Entry("perdure.cli.audit:export", "Write the evidence into one file."),
        "verify": Entry("perdure.cli.audit:verify", "Verify such a file offline."),
    }
}

EVERY_MAP: tuple[Sections, ...] = (
    COMMANDS,
    SCHEDULE,
    THREADS,
    TEMPLATES,
    TOOLS,
    EFFECTS,
    APPROVALS,
    MESSAGES,
    PEOPLE,
    TOKENS,
    KEY,
    MODELS,
    AUDIT,
)
"""All maps there are, for the reference and the tests."""
