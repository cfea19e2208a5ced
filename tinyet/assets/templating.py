# SPDX-License-Identifier: Apache-2.0
"""The one Jinja environment: templates print, they decide nothing; an undefined name is an error."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import jinja2

from tinyet import assets


@cache
def environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(assets.path("templates"))),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(template: str, context: Mapping[str, object]) -> str:
    """One template, by its path below templates/, with exactly these names."""
    return environment().get_template(template).render(context)
