"""Puts the parts of the API's process together."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path

from perdure import application
from perdure.auditing import Auditor
from perdure.catalog import Catalog
from perdure.client import Client
from perdure.deciding import Decider
from perdure.effect_listing import find_kinds, list_effects
from perdure.effects.base import Effect
from perdure.errors import SetupError
from perdure.intake import Intake, Rendering
from perdure.people import channels_of, policies_of, today_of
from perdure.rules.base import Rule
from perdure.runtime.connect import connect
from perdure.runtime.messenger import ANSWER_LIMIT, Messenger
from perdure.settings import Settings, read_secret
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.live import LiveTexts
from perdure.store.reading import Reader
from perdure.store.signing import DecisionKey, public_keys
from perdure.telling import Telling
from perdure.tool_listing import find_tools, list_tools


def make_client(
    settings: Settings,
    ledger: Ledger,
    renderer: Rendering,
    *,
    rules: Mapping[str, Rule],
    effects: Mapping[str, Effect],
    patience: timedelta = ANSWER_LIMIT,
) -> Client:
    """Return the client of an installation: everything built once, from its settings. Temporal is not needed for it.

    ``patience``: how long a workflow may take to answer.
    """
    blobs = BlobStore(settings.blobs)
    key = find_key(settings.keys, ledger)
    keys = partial(public_keys, settings.keys)
    today = today_of(settings)
    reader = Reader(ledger, blobs, keys, today)
    messenger = Messenger(partial(connect, settings, role="api"), limit=patience)
    catalog = Catalog(application.root() / "templates" / "jobs", settings.templates_folder)
    kinds = partial(find_kinds, settings, effects)
    intake = Intake(
        catalog,
        ledger,
        renderer,
        rules=rules,
        effects=kinds,
        tools=partial(find_tools, settings),
        policies=partial(policies_of, settings),
    )
    return Client(
        ledger=ledger,
        blobs=blobs,
        reader=reader,
        intake=intake,
        decider=Decider(ledger, blobs, reader, key, messenger, rules, today),
        auditor=Auditor(ledger, blobs, keys, effects, messenger),
        messenger=messenger,
        texts=LiveTexts(settings.live),
        telling=Telling(ledger.database, partial(channels_of, settings), partial(read_secret, settings)),
        tools=partial(list_tools, settings),
        kinds=partial(list_effects, settings),
        is_embedded=settings.is_embedded,
    )


def find_key(folder: Path, ledger: Ledger) -> DecisionKey:
    """Return the decision key; made, without a passphrase, when nobody has decided anything yet.

    Raises:
        SetupError: it is missing or unsafe, and there are decisions: a new key would hide that one was lost.
    """
    try:
        return DecisionKey.load(folder)
    except SetupError:
        if (folder / "decision.pem").exists() or ledger.decisions():
            raise
        return DecisionKey.create(folder)


def owner_name() -> str:
    """Return the login name of our uid; the uid itself where the system knows no name for it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
