"""Loads and fills the templates of `prompts/`; an unknown placeholder is an error."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import jinja2

from rag.errors import RagError
from rag.text import visible

_BESIDE = Path(__file__).parent / "prompts"
_IN_CHECKOUT = Path(__file__).parents[1] / "prompts"
SUFFIX = ".md.j2"

# A sentence must not be able to close its fence, nor to pass for a model's control token; other
# angle brackets stay as they are.
_FENCE = re.compile(
    r"<(\s*/?\s*(?:evidence|\||(?:s|bos|eos|start_of_turn|end_of_turn)\s*>))", re.IGNORECASE
)


def directory() -> Path:
    """Where the templates lie: inside an installed package, or at the top of a checkout."""
    return _BESIDE if _BESIDE.is_dir() else _IN_CHECKOUT


def render(name: str, **values: Any) -> str:
    """Fill the template `name`, without its suffix.

    Raises:
        RagError: there is no such template, or a placeholder is left without a value.
    """
    try:
        return _environment().get_template(name + SUFFIX).render(**values).strip()
    except jinja2.TemplateError as error:
        raise RagError(f"The prompt {directory() / (name + SUFFIX)} is broken: {error}") from error


def fenced(text: str) -> str:
    """Text made safe between fences: `</evidence>` and `<|special|>` lose their bracket.

    It becomes one line, without what cannot be seen.
    """
    return _FENCE.sub(r"‹\1", visible(text))


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(directory()),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        # Whatever is filled in, in any template, comes from papers, users or models.
        finalize=lambda value: fenced(value) if isinstance(value, str) else value,
        keep_trailing_newline=False,
    )
    environment.filters["fenced"] = fenced
    return environment
