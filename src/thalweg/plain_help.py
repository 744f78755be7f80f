"""Commands and groups of commands whose help shows no type for flags.

Newer versions of Typer print `<bool>` beside each flag, as if a value had to be given.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - as Typer's versions differ
        """The options and arguments, `--help` among them."""
        return without_types_of_flags(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - as Typer's versions differ
        """The options and arguments, `--help` among them."""
        return without_types_of_flags(super().get_params(ctx))


def without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """The parameters, with nothing to be shown where other options show their type."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
