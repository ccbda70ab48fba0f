"""What a forked process finds loaded (``forked.py``): the API, the worker, and what a job's first step would import."""

from __future__ import annotations

from perdure.runtime.imports import importing

with importing():
    import perdure.api.serving
    import perdure.policy.templates
    import perdure.rules.registry
    import perdure.tools.registry
    import worker

    worker.RULES.load()
    perdure.tools.registry.default_tools()

LOADED = (perdure.api.serving, perdure.policy.templates)
