"""sql.execute: one statement on SQLite or PostgreSQL, in a transaction of its own; told by a query."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import know_arguments
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Found, Probe, problems_of
from perdure.effects.sql_place import Session, Writing, database_in, read_database, ways_to
from perdure.effects.sql_text import holds, read_parameters, read_query, read_statement, runs_alone
from perdure.errors import EffectNotBegun, PerdureError, UserError


class SqlExecute:
    """Undone by the statement that `undo` declares; told by the query that `probe` declares."""

    kind: ClassVar[str] = "sql.execute"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = False
    settle: ClassVar[timedelta] = timedelta(0)
    """A transaction that a dead worker left is waited for by its lock, and then a "no" is final."""

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: database (name of the secret with its URL, or a SQLite file), statement, parameters ($1, …), rows.

        ``probe``: query, parameters, expect, before. ``require``: a query. ``undo``: statement, parameters, rows,
        only_if.
        """
        know_arguments(request, self.kind, ("database", "statement", "parameters", "rows"))
        database = read_database(request)
        body: JsonDict = {
            "database": database,
            **_read_change(request, "with", request.arguments),
            "probe": read_query(request.id, "probe", request.probe, keys=("before",)) if request.probe else None,
            "require": read_query(request.id, "require", request.require) if request.require else None,
            "gone": False,
            "limit_seconds": max(1, int(request.attempt_limit.total_seconds() * 0.9)),
        }
        requires = [f"`{body['require']['query']}` says yes"] if body["require"] else []
        if body["alone"]:
            requires.append("it runs outside of a transaction: what it did until a failure stays")
        return EffectDraft(
            body=body,
            summary=" ".join(body["statement"].split())[:200],
            target=f"sql:{database}",
            inverse=self._inverse(request, body),
            requires=requires,
            ways_out=ways_to(database),
        )

    def _inverse(self, request: EffectRequest, body: JsonDict) -> Inverse:
        if request.irreversible:
            return Inverse(irreversible=request.irreversible)
        if request.undo == "none_needed":
            return Inverse(none_needed="the template says that nothing has to be undone")
        if not isinstance(request.undo, dict):
            raise UserError(
                f"Step {request.id!r}: sql.execute needs `undo: {{statement: …}}`, `undo: none_needed` or "
                "`irreversible: <why>`."
            )
        known = ("statement", "parameters", "rows", "only_if")
        if not set(request.undo) <= set(known):
            raise UserError(f"Step {request.id!r}: `undo` takes {', '.join(known)}; it has {', '.join(request.undo)}.")
        only_if = request.undo.get("only_if")
        back = {
            **body,
            **_read_change(request, "undo", request.undo),
            "require": read_query(request.id, "undo.only_if", only_if) if only_if else None,
            "gone": True,
        }
        summary = " ".join(back["statement"].split())[:200]
        return Inverse(summary=summary, kind=self.kind, version=self.version, body=back)

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """``require`` (for the way back ``only_if``) says yes, and the probe finds nothing strange."""
        try:
            with database_in(body, context).reading() as session:
                problems = _unmet(body, session)
                probe = _look(body, session)
        except (PerdureError, OSError) as error:
            return [str(error)]
        if not body["probe"]:
            return problems
        return problems if probe.found in (Found.done, Found.not_done) else [*problems, probe.detail]

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Ask the probe's query. Without one nothing can be told."""
        if not body["probe"]:
            return Probe(Found.unknown, "the step gives no probe for this statement")
        try:
            database = database_in(body, context)
            if database.file is None and not self._has_ended(body, context):
                return Probe(Found.unknown, "a transaction of an earlier attempt still runs on the server")
            with database.reading() as session:
                return _look(body, session)
        except (PerdureError, OSError) as error:
            return Probe(Found.unknown, str(error))

    @staticmethod
    def _has_ended(body: JsonDict, context: EffectContext) -> bool:
        from perdure.effects.sql_postgres import await_lock

        return await_lock(database_in(body, context).url, _name(body))

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Look once more and run it, in one transaction; what is found done there is left alone.

        Raises:
            EffectNotBegun: nothing of it is committed.
            EffectFailed: it ran outside of a transaction and failed.
            EffectUnknown: whether it was committed cannot be known.
        """
        how = Writing(_name(body), timedelta(seconds=body["limit_seconds"]), alone=body["alone"])
        with database_in(body, context).writing(how) as session:
            if body["probe"]:
                seen = _look(body, session)
                if seen.found is Found.done:
                    return {"rows": 0, "found": seen.detail}
                if seen.found is Found.foreign:
                    raise EffectNotBegun(f"{seen.detail}. Nothing was run.")
            if problems := _unmet(body, session):
                raise EffectNotBegun(f"{'; '.join(problems)} Nothing was run.")
            rows = session.run(body["statement"], body["parameters"])
            if body["rows"] is not None and rows != body["rows"]:
                raise EffectNotBegun(f"it would change {rows} rows instead of {body['rows']}. It was rolled back.")
        return {"rows": rows}

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The probe, where there is one, finds it done."""
        return problems_of(self.probe(body, context)) if body["probe"] else []


def _read_change(request: EffectRequest, name: str, given: dict[str, Any]) -> JsonDict:
    statement = read_statement(request.id, "statement" if name == "with" else "undo.statement", given.get("statement"))
    rows = given.get("rows")
    alone = runs_alone(statement)
    if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 0 or alone):
        raise UserError(f"Step {request.id!r}: `rows` is {rows!r}; expected how many rows a statement changes.")
    parameters = read_parameters(request.id, f"{name}.parameters", given.get("parameters"))
    return {"statement": statement, "parameters": parameters, "rows": rows, "alone": alone}


def _look(body: JsonDict, session: Session) -> Probe:
    query = body["probe"]
    if not query:
        return Probe(Found.unknown, "the step gives no probe for this statement")
    rows = session.ask(query["query"], query["parameters"])
    shown = str(rows[0][0])[:60] if rows and rows[0] else "no row"
    detail = f"`{query['query'][:120]}` gives {shown}"
    is_there = holds(query, rows)
    if not is_there and "before" in query and not holds(query, rows, "before"):
        return Probe(Found.foreign, f"{detail}: neither as before nor as it shall be")
    return Probe(Found.done if is_there != body["gone"] else Found.not_done, detail)


def _unmet(body: JsonDict, session: Session) -> list[str]:
    query = body["require"]
    if not query or holds(query, session.ask(query["query"], query["parameters"])):
        return []
    return [f"`{query['query']}` does not say yes."]


def _name(body: JsonDict) -> str:
    """The same for the way there and back, and for nothing else on this database."""
    probe = body["probe"] or {}
    return f"{body['database']}\n{probe.get('query', body['statement'])}\n{probe.get('parameters', body['parameters'])}"
