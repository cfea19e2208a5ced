# SPDX-License-Identifier: Apache-2.0
"""Where generated code finds an instance's memory: in variables of its own, or in a context that the caller gives.

The one form is for programs that run a model in one place; addresses are constants. The other has no variables at all:
there may be as many instances as there are contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyet.deployment import Deployment
from tinyet.emit.names import Names


@dataclass(frozen=True)
class End:
    """An input or output in a buffer of the caller's, as a parameter of a run."""

    kind: str
    index: int
    ctype: str

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.index}"

    @property
    def parameter(self) -> str:
        return f"{'const ' if self.kind == 'input' else ''}{self.ctype} *{self.name}"


def ends_of(deployment: Deployment) -> tuple[End, ...]:
    """The parameters of a run; none where inputs and outputs lie in the arena."""
    graph = deployment.graph
    if deployment.plan.buffers_from is None:
        return ()
    sides = (("input", graph.user_inputs), ("output", graph.user_outputs))
    return tuple(End(kind, i, t.dtype.c) for kind, tensors in sides for i, t in enumerate(tensors))


@dataclass(frozen=True)
class Instance:
    """Words of C by which a model's functions take, hand on and look into an instance.

    context: whether callers have it. only, first: its parameter, alone or before others; read: likewise, of functions
    that only look where something is. give, give_first: the argument that hands it on. arena: the expression of the
    arena's address; image: before what is known of an image's rows; field: before other variables. shared: whose arena
    it is, where several models have one; suffix: of an application's names where it has several models. sized: a run is
    told how large its inputs are. ends: the buffers that a run is given, in the order of its parameters. second_from:
    of an arena in two pieces, the second one's first offset.
    """

    name: str
    context: bool
    shared: str = ""
    suffix: str = ""
    sized: bool = False
    ends: tuple[End, ...] = ()
    second_from: int | None = None

    @property
    def only(self) -> str:
        return f"{self.name}_context *ctx" if self.context else "void"

    @property
    def first(self) -> str:
        return f"{self.only}, " if self.context else ""

    @property
    def run(self) -> str:
        """The parameters of a run."""
        return self._listed(self._context, ["uint32_t size"] * self.sized, [e.parameter for e in self.ends])

    @property
    def step(self) -> str:
        """The parameters of a slice."""
        return self._listed(self._context, [e.parameter for e in self.ends])

    @property
    def layers(self) -> str:
        """Of the function behind it, for a size that has been checked."""
        return self._listed(self._context, ["int32_t size"] * self.sized, [e.parameter for e in self.ends])

    @property
    def give_layers(self) -> str:
        """The arguments of that function, in a run."""
        size = ["(int32_t)size"] * self.sized
        return ", ".join([*["ctx"] * self.context, *size, *(e.name for e in self.ends)])

    @property
    def give_step(self) -> str:
        return ", ".join(["ctx", *(e.name for e in self.ends)])

    @property
    def buffers(self) -> str:
        """The parameters of what looks at the caller's buffers only."""
        return ", ".join(e.parameter for e in self.ends)

    @property
    def give_buffers(self) -> str:
        return ", ".join(e.name for e in self.ends)

    @property
    def selftest(self) -> str:
        """The parameters of a self-test, which writes inputs, too."""
        return self._listed(self._context, [f"{e.ctype} *{e.name}" for e in self.ends])

    @property
    def own_selftest(self) -> str:
        """The arguments for it, or for a slice, in an application."""
        return ", ".join([*[self.own] * self.context, *(self.own_end(e.kind, e.index) for e in self.ends)])

    def _listed(self, *parameters: Sequence[str]) -> str:
        return ", ".join(each for some in parameters for each in some) or "void"

    @property
    def _context(self) -> list[str]:
        return [self.only] * self.context

    def end(self, kind: str, index: int) -> str:
        """Within a function that has the instance: where an input or output lies."""
        return f"{kind}_{index}" if self.ends else f"{self.name}_{kind}_{index}({self.give})"

    def own_end(self, kind: str, index: int) -> str:
        """Likewise in an application, which has one instance and, if they are the caller's, the buffers."""
        if self.ends:
            return f"{kind}_{index}{self.suffix}"
        return f"{self.name}_{kind}_{index}({self.own})"

    def own_setting(self, index: int) -> str:
        """The argument before the values of `_set_input_`, in an application."""
        return f"{self.own_end('input', index)}, " if self.ends else self.own_first

    @property
    def own_buffers(self) -> list[str]:
        """The definitions of an application's buffers."""
        found = []
        for e in self.ends:
            macro = f"{self.name}_{e.name}".upper()
            count, align = f"{macro}_COUNT", f"{macro}_ALIGN"
            found.append(f"static {e.ctype} {e.name}{self.suffix}[{count}] TINYET_ALIGNED({align});")
        return found

    @property
    def reading(self) -> str:
        """The parameters by which an application's function finds all outputs; none: empty."""
        if self.ends:
            return ", ".join(f"const {e.ctype} *{e.name}" for e in self.ends if e.kind == "output")
        return self.read if self.context else ""

    @property
    def give_reading(self) -> str:
        """The arguments for them, in an application."""
        if self.ends:
            return ", ".join(self.own_end(e.kind, e.index) for e in self.ends if e.kind == "output")
        return self.own

    @property
    def own_run(self) -> str:
        """The arguments by which an application runs the one instance that it has, on as much as it takes."""
        return self.own_run_of(f"{self.name.upper()}_SIZE_MAX")

    def own_run_of(self, size: str) -> str:
        """Likewise, for a size."""
        buffers = [self.own_end(e.kind, e.index) for e in self.ends]
        return ", ".join([*[self.own] * self.context, *[size] * self.sized, *buffers])

    @property
    def read(self) -> str:
        return f"const {self.name}_context *ctx" if self.context else "void"

    @property
    def read_first(self) -> str:
        return f"{self.read}, " if self.context else ""

    @property
    def give(self) -> str:
        return "ctx" if self.context else ""

    @property
    def give_run(self) -> str:
        """The arguments of a run on as much as the model takes."""
        size = [f"{self.name.upper()}_SIZE_MAX"] * self.sized
        return ", ".join([*["ctx"] * self.context, *size, *(e.name for e in self.ends)])

    @property
    def give_first(self) -> str:
        return "ctx, " if self.context else ""

    @property
    def arena(self) -> str:
        return "ctx->arena" if self.context else f"{self.shared or self.name}_arena"

    @property
    def second(self) -> str:
        """The address of the second piece of an arena."""
        return f"{self.name}_arena_2"

    def is_second(self, offset: int) -> bool:
        """Whether it is one of the arena's second piece."""
        return self.second_from is not None and offset >= self.second_from

    def piece(self, offset: int) -> str:
        """The address of the arena, or of the piece of it, that an offset is of."""
        return self.second if self.is_second(offset) else self.arena

    def within(self, offset: int) -> int:
        """Bytes from the start of that piece."""
        return offset - (self.second_from or 0) if self.is_second(offset) else offset

    def at(self, offset: int) -> str:
        """The address of bytes in the arena, where a function has that as `arena`."""
        return f"{self.second if self.is_second(offset) else 'arena'} + {self.within(offset)}"

    @property
    def image(self) -> str:
        return "ctx->image." if self.context else f"{self.name}_image."

    @property
    def image_all(self) -> str:
        return self.image.removesuffix(".")

    @property
    def reentrancy(self) -> str:
        """What a run's comment says of others at the same time."""
        return "One at a time for an instance." if self.context else "Not reentrant."

    @property
    def own(self) -> str:
        """The argument by which an application gives the one instance that it has."""
        return f"&instance{self.suffix}" if self.context else ""

    @property
    def own_first(self) -> str:
        return f"{self.own}, " if self.context else ""

    @property
    def field(self) -> str:
        return "ctx->" if self.context else ""

    def reserve(self, names: Names) -> None:
        """Keep the parameters' names from the values of a model."""
        words = ["ctx"] * self.context + ["size"] * self.sized
        names.reserve(words, [e.name for e in self.ends])


def instance_of(deployment: Deployment, name: str, *, context: bool = False, shared: str = "") -> Instance:
    """The words of a deployment."""
    return Instance(
        name,
        context,
        shared,
        sized=deployment.sized is not None,
        ends=ends_of(deployment),
        second_from=deployment.plan.second_from,
    )
