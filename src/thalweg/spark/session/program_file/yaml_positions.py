"""Reads a YAML file, with the line of every field. PyYAML is part of the extra `yaml`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg.spark.session.program_file.positions import FieldPath, FieldPosition, TextStart

if TYPE_CHECKING:
    from yaml import Node, ScalarNode

INSTALL = "YAML files need PyYAML: run `pip install 'thalweg[yaml]'`, or write the file as TOML"


def read_yaml(text: str) -> tuple[Any, dict[FieldPath, FieldPosition]]:
    """The values of a YAML text and the position of every field, or a ValueError that says what is wrong."""
    try:
        import yaml
    except ImportError:
        raise ValueError(INSTALL) from None
    try:
        values = yaml.safe_load(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" (at line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise ValueError(f"{error.problem or error.context}{place}") from None
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    found: dict[FieldPath, FieldPosition] = {}
    if root is not None:
        _note_fields(root, (), text.splitlines(), found, set())
    return values, found


def _note_fields(
    node: Node, field: FieldPath, lines: list[str], found: dict[FieldPath, FieldPosition], seen: set[int]
) -> None:
    """Note the positions of all fields in a node. A node with several aliases is noted where it comes first."""
    import yaml

    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for number, element in enumerate(node.value):
            found[*field, number] = FieldPosition(element.start_mark.line + 1)
            _note_fields(element, (*field, number), lines, found, seen)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*field, str(key.value))
            if inner in found:
                raise ValueError(
                    f"{key.value!r} is written twice in one table (at lines {found[inner].line} and "
                    f"{key.start_mark.line + 1}): remove one of them"
                )
            start = _text_start(value, lines) if isinstance(value, yaml.ScalarNode) else None
            found[inner] = FieldPosition(key.start_mark.line + 1, start)
            _note_fields(value, inner, lines, found, seen)


def _text_start(node: ScalarNode, lines: list[str]) -> TextStart | None:
    """Where the content of a scalar begins, if the file has the same letters as the content."""
    start, end = node.start_mark, node.end_mark
    if node.style == "|":
        content = lines[start.line + 1] if start.line + 1 < len(lines) else ""
        indent = len(content) - len(content.lstrip(" "))
        return TextStart(start.line + 2, indent, indent)
    if node.style == ">" or start.line != end.line:
        return None
    quotes = 1 if node.style else 0
    written = lines[start.line][start.column + quotes : end.column - quotes]
    return TextStart(start.line + 1, start.column + quotes) if written == node.value else None
