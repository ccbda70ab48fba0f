"""Routes about templates: list, show, check, trust."""

from __future__ import annotations

from fastapi import APIRouter

from perdure.api.asking import Asked, Asking
from perdure.contracts.base import JsonDict
from perdure.contracts.http import TemplateView, TrustRequest, ValidateRequest
from perdure.policy.templates import template_schema

router = APIRouter()


@router.get("/templates")
async def list_templates(folder: str, client: Asked, principal: Asking) -> list[TemplateView]:
    """Every template that can be seen from a folder, with what is wrong with it."""
    return await client.read(principal, lambda: client.intake.list_all(folder))


@router.get("/template")
async def show_template(name: str, folder: str, client: Asked, principal: Asking) -> TemplateView:
    """One template, whole."""
    return await client.read(principal, lambda: client.intake.show(name, folder))


@router.get("/templates/schema")
async def show_schema(client: Asked, principal: Asking) -> JsonDict:
    """The JSON schema of templates, for editors."""
    return await client.read(principal, template_schema)


@router.post("/templates/validate")
async def validate_template(request: ValidateRequest, client: Asked, principal: Asking) -> TemplateView:
    """How a text would be listed; ``problem`` holds everything that is wrong with it, with its lines."""
    return await client.read(principal, lambda: client.intake.validate(request.text, request.path))


@router.post("/templates/trust")
async def trust_template(request: TrustRequest, client: Asked, principal: Asking) -> TemplateView:
    """Let a repository's template run, by the digest of its text."""
    return await client.trust(principal, request)
