"""Errors as HTTP: one body for all of them, with the status that fits who must act."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from perdure import errors
from perdure.contracts.http import Problem

log = logging.getLogger("perdure.api")

_STATUSES: tuple[tuple[type[errors.PerdureError], int], ...] = (
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.UserError, 422),
    (errors.SetupError, 503),
    (errors.Tampered, 500),
    (errors.Refused, 403),
    (errors.TooLarge, 413),
)


def status_of(error: errors.PerdureError) -> int:
    """Return the HTTP status of one of our errors."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def kind_of(error: errors.PerdureError) -> str:
    """Return the name of the class in ``perdure.errors`` that an error is, or is a refinement of."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__)


def problem(
    kind: str, message: str, status: int, *, exit_code: int = 1, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return an error's response."""
    body = Problem(kind=kind, message=message, exit_code=exit_code)
    return JSONResponse(body.model_dump(mode="json"), status_code=status, headers=headers)


def install_problems(app: FastAPI) -> None:
    """Answer every error of ``app`` with a ``Problem``."""

    @app.exception_handler(errors.PerdureError)
    def _ours(request: Request, error: errors.PerdureError) -> JSONResponse:
        return problem(kind_of(error), error.message, status_of(error), exit_code=error.exit_code)

    @app.exception_handler(RequestValidationError)
    def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        said = "; ".join(_explain(item) for item in error.errors())
        return problem("UserError", f"The request cannot be read: {said}", 422, exit_code=errors.UserError.exit_code)

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> JSONResponse:
        message = f"{request.method} {request.url.path}: {error.detail}. See /v1/openapi.json for what there is."
        return problem("UserError", message, error.status_code, exit_code=errors.UserError.exit_code)

    @app.exception_handler(Exception)
    def _unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        message = f"Perdure made a mistake ({type(error).__name__}); nothing more was done. Its log has the details."
        return problem("InternalError", message, 500)


def _explain(item: Any) -> str:
    where = ".".join(str(part) for part in item["loc"] if part != "body") or "the body"
    return f"{where}: {item['msg']}"
