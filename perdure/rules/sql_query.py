"""sql.query: rows of one query on SQLite or PostgreSQL, in a session that may change nothing."""

from __future__ import annotations

from perdure.contracts.base import JsonDict
from perdure.effects.base import EffectRequest
from perdure.effects.sql_place import Database, find_database, read_database, ways_to
from perdure.effects.sql_text import read_parameters, read_statement
from perdure.errors import EffectNotBegun, UserError
from perdure.rules.base import Rule, RuleContext, RuleResult

NAME = "sql.query"
_MOST_ROWS = 1000


def gather_rows(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Return ``rows``, a list of objects by column: texts, whole numbers, booleans and nulls; all else is its text.

    Raises:
        UserError: no such secret, no query, or more rows than a plan should rest on.
        EffectUnknown: the database cannot be asked now; the source is tried again.
    """
    request = EffectRequest(id=NAME, arguments=arguments)
    name = read_database(request)
    query = read_statement(NAME, "query", arguments["query"])
    parameters = read_parameters(NAME, "parameters", arguments.get("parameters"))
    with _find(name, context).reading() as session:
        rows = session.ask_named(query, parameters)
    if len(rows) > _MOST_ROWS:
        raise UserError(f"{NAME}: the query gives {len(rows)} rows; at most {_MOST_ROWS} are read. Narrow it.")
    value: JsonDict = {"rule": NAME, "rows": rows}
    return RuleResult(value, f"{len(rows)} row{'' if len(rows) == 1 else 's'}")


def _find(name: str, context: RuleContext) -> Database:
    try:
        return find_database(name, context.secrets(ways_to(name)))
    except EffectNotBegun as error:
        raise UserError(error.message) from None


RULE = Rule(
    name=NAME,
    rule_class="source",
    run=gather_rows,
    needs=frozenset({"database", "query"}),
    takes=frozenset({"parameters"}),
    about="Rows of one query, by column; `database` is a SQLite file's absolute path or a secret's name.",
)
