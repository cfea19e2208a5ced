# SPDX-License-Identifier: Apache-2.0
"""Names in the generated C: made of the user's module paths and tensor names, each unique, and different from the
names of C, its library, included headers and the model's own interface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from tinyet.deployment import Step
from tinyet.ir import Node
from tinyet.ops.conv2d import Conv2d
from tinyet.opset import Definition
from tinyet.planning.layer_names import common_module, identifier, kind, module_of

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
# Names of the C library, and of what Unix declares beside it: compilers know many of them without a header. Those of
# <math.h> are there for float and long double, too.
_LIBRARY = """
abort abs alloca asctime assert atexit atof atoi atol atoll bcmp bcopy bsearch bzero calloc clearerr clock complex cpow
creal ctime cimag conj difftime div errno exit fclose feof ferror fflush ffs fgetc fgetpos fgets fopen fprintf fputc
fputs fread free freopen fscanf fseek fsetpos ftell fwrite getc getchar getenv gets gmtime imaginary index isalnum
isalpha isblank iscntrl isdigit isfinite isgraph isinf islower isnan isnormal isprint ispunct isspace isupper isxdigit
kill labs ldiv link llabs lldiv localeconv localtime longjmp main malloc memccpy memchr memcmp memcpy memmove mempcpy
memset mktime nice noreturn offsetof open pause perror pipe printf printk putc putchar puts qsort raise rand read
realloc remove rename rewind rindex scanf select setbuf setjmp setlocale setvbuf signal signbit sleep snprintf sprintf
srand sscanf stderr stdin stdout strcat strchr strcmp strcoll strcpy strcspn strdup strerror strftime strlen strncat
strncmp strncpy strpbrk strrchr strspn strstr strtod strtof strtok strtol strtoul strxfrm swab sync system time tmpfile
tmpnam tolower toupper ungetc unlink va_arg va_copy va_end va_list va_start vfprintf vprintf vsnprintf vsprintf wait
write
"""
_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor fma
fmax fmin fmod fpclassify frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint
lround modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo rint round scalbln scalbn significand sin
sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
"""
_TYPES = """
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t ptrdiff_t size_t ssize_t
max_align_t
"""
# Macros that compilers define in GNU mode, in lower case.
_MACROS = "arm i386 linux mips sparc sun unix vax"
# Of the functions in which the names are used.
_LOCALS = "arena count first i next order params part parts ready rows turn tinyet_try_status"

RESERVED = frozenset(
    "".join([_KEYWORDS, _LIBRARY, _TYPES, _MACROS, " ", _LOCALS]).split()
    + [word + suffix for word in _MATH.split() for suffix in ("", "f", "l")]
)

_NOT_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_ENUMERATORS = re.compile(r"\benum\b[^{};]*\{([^{}]*)\}")
_BLOCK = re.compile(r"\{[^{}]*\}")
_DECLARATOR = re.compile(r"\b(\w+)[ \t]*(?:\(|(?:\[[^]]*\][ \t]*)*[;=])")


class Names:
    """Gives each name once, and no reserved one."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = set(RESERVED).union(reserved)
        self._given: set[str] = set()

    def reserve(self, *names: Iterable[str]) -> None:
        """Never give any of these."""
        self._reserved.update(*names)

    def unique(self, wanted: str, other: str = "value") -> str:
        """A C identifier like `wanted`: as it is, with `_` behind it if it is reserved, or numbered.

        other: replaces it if it has no letter, and precedes it if it begins with a digit.
        """
        name = identifier(wanted)
        if not name or name[0].isdigit():
            name = f"{other}_{name}" if name else other
        if name == name.upper():  # as macros are spelt
            name = name.lower()
        if name in self._reserved:
            name += "_"
        number, found = 1, name
        while found in self._given or found in self._reserved:
            number += 1
            found = f"{name.rstrip('_')}_{number}"
        self._given.add(found)
        return found


# ---------------------------------------------------------------- functions


def function_names(steps: Sequence[Step], layers: Sequence[str], names: Names) -> dict[Definition, str]:
    """A name for each function that was made for calls: after the layer, or the common part of its several layers."""
    users: dict[Definition, list[Step]] = {}
    for step in steps:
        if isinstance(step.call.symbol, Definition):
            users.setdefault(step.call.symbol, []).append(step)
    found = {}
    for definition, calls in users.items():
        word = identifier("_".join(dict.fromkeys(_work(step.node) for step in calls)))
        if len({call.index for call in calls}) == 1:
            base = layers[calls[0].index]
        else:
            base = identifier(common_module([module_of(step.node) for step in calls])) or "shared"
        if not re.search(rf"(^|_){re.escape(word)}(_\d+)?$", base):
            base = f"{base}_{word}"
        found[definition] = names.unique(base, "layer")
    return found


def _work(node: Node) -> str:
    """The work of a function that was made for a node, in a word: one for all inputs of a pixel at once differs from
    one for each channel by itself."""
    if isinstance(node.attrs, Conv2d) and node.attrs.groups == node.input(0).shape[3] > 1:
        return "depthwise"
    return kind(node)


@lru_cache(maxsize=128)
def declared(header: str) -> frozenset[str]:
    """The names that a C header gives to macros, functions, variables, types and enumerators, and maybe some more."""
    code = _NOT_CODE.sub(" ", header)
    found = set(_MACRO.findall(code))
    code = re.sub(r"\bextern[ \t]*\{", "", _DIRECTIVE.sub("", code))
    for body in _ENUMERATORS.findall(code):
        found.update(re.findall(r"(?:^|,)\s*(\w+)", body))
    count = 1
    while count:  # from the inside out; the rest is at file scope
        code, count = _BLOCK.subn(";", code)
    return frozenset(found.union(_DECLARATOR.findall(code)))
