# SPDX-License-Identifier: Apache-2.0
"""Where generated code finds an instance's memory: in variables of its own, or in a context that the caller gives.

The one form is for programs that run a model in one place; addresses are constants. The other has no variables at all:
there may be as many instances as there are contexts.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.emit.names import Names


@dataclass(frozen=True)
class Instance:
    """Words of C by which a model's functions take, hand on and look into an instance.

    context: whether callers have it. only, first: its parameter, alone or before others; read: likewise, of functions
    that only look where something is. give, give_first: the argument that hands it on. arena: the expression of the
    arena's address; image: before what is known of an image's rows; field: before other variables. shared: whose arena
    it is, where several models have one; suffix: of an application's names where it has several models. sized: a run is
    told how large its inputs are.
    """

    name: str
    context: bool
    shared: str = ""
    suffix: str = ""
    sized: bool = False

    @property
    def only(self) -> str:
        return f"{self.name}_context *ctx" if self.context else "void"

    @property
    def first(self) -> str:
        return f"{self.only}, " if self.context else ""

    @property
    def run(self) -> str:
        """The parameters of a run."""
        return f"{self.first}uint32_t size" if self.sized else self.only

    @property
    def layers(self) -> str:
        """Of the function behind it, for a size that has been checked."""
        return f"{self.first}int32_t size" if self.sized else self.only

    @property
    def own_run(self) -> str:
        """The arguments by which an application runs the one instance that it has, on as much as it takes."""
        most = f"{self.name.upper()}_SIZE_MAX"
        return f"{self.own_first}{most}" if self.sized else self.own

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
        most = f"{self.name.upper()}_SIZE_MAX"
        return f"{self.give_first}{most}" if self.sized else self.give

    @property
    def give_first(self) -> str:
        return "ctx, " if self.context else ""

    @property
    def arena(self) -> str:
        return "ctx->arena" if self.context else f"{self.shared or self.name}_arena"

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
        names.reserve((["ctx"] if self.context else []) + (["size"] if self.sized else []))
