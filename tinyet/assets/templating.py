# SPDX-License-Identifier: Apache-2.0
"""Templates print, they decide nothing; an undefined name is an error, and so is text that could be read as something
else.

Each template is in one language, which the ending of its name tells, and each language has an environment. What a
`{{ … }}` prints is a number, or text of the few characters that mean nothing anywhere in that language; for other text
the template says where it stands, by one of the language's filters:

    comment     inside a comment
    quoted      a string, with its quotes
    text, code  in the prose of a README, between its backticks
    argument    one argument of a CMake command
    setting     a whole line `CONFIG_NAME=value`
    verbatim    text that tinyet itself has written in this language

Without a filter such text is refused when it is printed, so a place that was forgotten cannot let anything through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

import jinja2

from tinyet import assets
from tinyet.errors import InternalError
from tinyet.messages import text


class _Written(str):
    """Text in the language of its template: a filter has seen it."""

    __slots__ = ()


@dataclass(frozen=True)
class _Language:
    """plain: text that means itself wherever it stands. filters: name -> what makes any text fit for a place."""

    name: str
    plain: re.Pattern[str]
    filters: Mapping[str, Callable[[str], str]]


def _json_string(value: str) -> str:
    return text.json_text(value, indent=None)


_C = _Language(
    "C", re.compile(r"(?!.*//)[\w.+\-/ ]*", re.ASCII), {"comment": text.c_comment, "quoted": text.c_string}
)
_CMAKE = _Language(
    "CMake",
    re.compile(r"[\w.+\-/]*", re.ASCII),
    {"comment": text.printable, "quoted": text.cmake_string, "argument": text.cmake_argument},
)
_INI = _Language("INI", re.compile(r"[\w.+\-/@:^~<>=,]*", re.ASCII), {"comment": text.printable})
_KCONFIG = _Language(
    "Kconfig",
    re.compile(r"[\w.+\-/@]*", re.ASCII),
    {"comment": text.printable, "quoted": text.kconfig_string, "setting": text.kconfig_setting},
)
_YAML = _Language(
    "YAML", re.compile(r"\w[\w.+\-/@]*", re.ASCII), {"comment": text.printable, "quoted": _json_string}
)
_JSON = _Language("JSON", re.compile(r"[\w.+\-/@: ]*", re.ASCII), {"quoted": _json_string})
_MARKDOWN = _Language(
    "Markdown",
    re.compile(r"[A-Za-z0-9](?:(?!://)[\w.+\-/@:,= ])*|[\w.]*", re.ASCII),
    {"text": text.markdown, "code": text.markdown_code},
)
_LINES = _Language("text", re.compile(r"[\w.+\-/@:,*]*", re.ASCII), {"comment": text.printable})

_BY_NAME = {"CMakeLists.txt": _CMAKE, "Kconfig": _KCONFIG}
_BY_SUFFIX = dict.fromkeys((".c", ".h", ".cpp", ".ino", ".ld"), _C) | {
    ".cmake": _CMAKE,
    ".conf": _KCONFIG,
    ".ini": _INI,
    ".json": _JSON,
    ".md": _MARKDOWN,
    ".properties": _LINES,
    ".txt": _LINES,
    ".yaml": _YAML,
    ".yml": _YAML,
}


def _language(template: str) -> _Language:
    path = PurePosixPath(template.removesuffix(".j2"))
    found = _BY_NAME.get(path.name) or _BY_SUFFIX.get(path.suffix)
    if found is None:
        raise InternalError(
            f"the template {template} is in no language that is known", "assets/templating.py"
        )
    return found


def _filter(convert: Callable[[str], str]) -> Callable[[object], _Written]:
    return lambda value: _Written(convert(str(value)))


class _Loader(jinja2.FileSystemLoader):
    """Finds the templates of one language."""

    def __init__(self, language: _Language) -> None:
        super().__init__(str(assets.path("templates")))
        self._language = language

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        if _language(template) is not self._language:
            raise InternalError(
                f"the template {template} is not {self._language.name}, as what includes it is"
            )
        return super().get_source(environment, template)


class _Environment(jinja2.Environment):
    """The environment of one language. Templates of another one can be neither included nor extended."""

    def __init__(self, language: _Language, *, tight: bool) -> None:
        super().__init__(
            loader=_Loader(language),
            undefined=jinja2.StrictUndefined,
            trim_blocks=not tight,
            lstrip_blocks=not tight,
            keep_trailing_newline=True,
            autoescape=False,
            finalize=self._finalized,
        )
        self._language = language
        self.filters |= {name: _filter(convert) for name, convert in language.filters.items()}
        self.filters["verbatim"] = _filter(str)

    def _finalized(self, value: object) -> object:
        """The text that `{{ … }}` prints. Raises InternalError for text that could have a meaning in the language."""
        match value:
            case _Written() | jinja2.Undefined():  # the latter: `x if y` without an else
                return value
            case bool() | None:
                pass
            case int() | float():
                return value
            case list() if all(type(item) is int for item in value):
                return value
            case str() if self._language.plain.fullmatch(value):
                return value
        raise InternalError(
            f"a template prints {value!r} and does not say how {self._language.name} is to read it",
            hint=f"filters: {', '.join([*self._language.filters, 'verbatim'])}",
        )


@cache
def _environment(language: str, *, tight: bool) -> _Environment:
    known = {each.name: each for each in (*_BY_NAME.values(), *_BY_SUFFIX.values())}
    return _Environment(known[language], tight=tight)


def render(template: str, context: Mapping[str, object], *, tight: bool = False) -> str:
    """One template, by its path below templates/, with exactly these names.

    tight: it says itself where lines end. Raises InternalError where it prints what its language could misread.
    """
    environment = _environment(_language(template).name, tight=tight)
    return environment.get_template(template).render(context)
