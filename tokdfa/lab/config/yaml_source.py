"""Reading YAML strictly: every fault names file, line and column, and every value knows its line.

PyYAML alone keeps the last of two equal keys and forgets where values came from. Aliases (``&a``, ``*a``) are expanded
by whoever walks the data, so a few hundred bytes can stand for billions of values; what a file stands for is counted
before it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tokdfa.core.nesting import with_room
from tokdfa.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import yaml

MAX_FILE_BYTES = 16 * 2**20
MAX_VALUES = 1_000_000
#: Values inside each other.
MAX_DEPTH = 200


@dataclass(frozen=True)
class YamlSource:
    """A YAML file: its data, and the syntax tree that knows the lines."""

    path: Path
    data: Any
    root: yaml.Node | None

    def error(self, message: str, where: Sequence[str | int] = ()) -> ConfigError:
        """A ConfigError that names the file, the line of the key or value at `where`, and its path."""
        line = self._line(where)
        return ConfigError(message, f"{self.path}:{line}" if line else str(self.path), key_path(where))

    def _line(self, where: Sequence[str | int]) -> int | None:
        """The line of the deepest part of `where` that is in the file."""
        import yaml

        node, line = self.root, None
        for part in where:
            if isinstance(node, yaml.MappingNode):
                pairs = ((key, value) for key, value in node.value if key.value == str(part))
                key, node = next(pairs, (None, None))
                line = key.start_mark.line + 1 if key is not None else line
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                line = node.start_mark.line + 1
            else:
                break
        return line


def key_path(where: Sequence[str | int]) -> str:
    """``("backends", 2, "options", "lazy")`` -> ``backends[2].options.lazy``."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


@cache
def _loader_class() -> type[yaml.SafeLoader]:
    """PyYAML's safe loader with a bound on depth, whose time grows with the square of it, and with its own dates: some
    packages have it read them as text, for the whole process.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        depth = 0
        yaml_constructors = {  # noqa: RUF012 (PyYAML's own way)
            **yaml.SafeLoader.yaml_constructors,
            "tag:yaml.org,2002:timestamp": yaml.SafeLoader.construct_yaml_timestamp,
        }

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            if self.depth == MAX_DEPTH and self.check_event(yaml.CollectionStartEvent):
                raise TooDeep(self.peek_event().start_mark)  # type: ignore[no-untyped-call]
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return Loader


class TooDeep(Exception):
    """A value is nested too deep; its one argument is PyYAML's mark of the place."""


def read_yaml(path: Path) -> YamlSource:
    """The content of a YAML file as plain data. Raises ConfigError; bounded time and memory for any file."""
    import yaml

    text = read_text(path)
    try:
        return with_room(lambda: _read(text, path))
    except TooDeep as error:
        raise _too_deep(path, error.args[0]) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        said = " ".join(filter(None, (error.context, error.problem)))
        raise ConfigError(f"this is not YAML: {said}", place) from None
    except yaml.YAMLError as error:  # a character that YAML does not admit
        raise ConfigError(f"this is not YAML: {error}", str(path)) from None
    except ValueError as error:  # a date such as 2024-99-99, or a number with too many digits
        raise ConfigError(f"a value cannot be read: {error}; quote it if it is text", str(path)) from None


def _read(text: str, path: Path) -> YamlSource:
    """What a text holds."""
    loader = _loader_class()(text)
    try:
        root = loader.get_single_node()
        if root is not None:
            _check_tree(root, path)
        return YamlSource(path, loader.construct_document(root) if root is not None else None, root)
    finally:
        loader.dispose()


def _too_deep(path: Path, mark: Any) -> ConfigError:
    place = f"{path}:{mark.line + 1}:{mark.column + 1}"
    return ConfigError(f"values are nested too deep: more than {MAX_DEPTH} inside each other", place)


def read_text(path: Path) -> str:
    """The content of a file, at most MAX_FILE_BYTES of UTF-8. Raises ConfigError, which names the file."""
    try:
        if path.is_dir():
            raise ConfigError("this is a folder, not a file", str(path))
        if path.exists() and not path.is_file():  # a device may never end
            raise ConfigError("this is not a regular file", str(path))
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ConfigError(f"{size} bytes is too large for this file (at most {MAX_FILE_BYTES})", str(path))
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError("there is no such file", str(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"the file is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}", str(path)
        ) from None
    except OSError as error:
        raise ConfigError(f"the file cannot be read: {error.strerror or error}", str(path)) from None


def _check_tree(root: yaml.Node, path: Path) -> None:
    """Refuse keys given twice, aliases that contain themselves, and trees that stand for too many values."""
    sizes: dict[int, int] = {}
    _count_values(root, path, sizes, set())


def _count_values(node: yaml.Node, path: Path, sizes: dict[int, int], inside: set[int]) -> int:
    import yaml

    if id(node) in sizes:
        return sizes[id(node)]
    place = f"{path}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
    if id(node) in inside:
        raise ConfigError("this value contains itself through an alias", place)
    if len(inside) >= MAX_DEPTH and isinstance(node, yaml.CollectionNode):
        raise _too_deep(path, node.start_mark)
    inside.add(id(node))
    total = 1
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError("a key must be a plain word", f"{path}:{key.start_mark.line + 1}")
            if key.value in seen:
                line = key.start_mark.line + 1
                raise ConfigError(f"key {key.value!r} was given already in line {seen[key.value]}", f"{path}:{line}")
            seen[key.value] = key.start_mark.line + 1
            total += _count_values(value, path, sizes, inside)
    elif isinstance(node, yaml.SequenceNode):
        total += sum(_count_values(value, path, sizes, inside) for value in node.value)
    if total > MAX_VALUES:
        raise ConfigError(f"this stands for more than {MAX_VALUES} values", place)
    inside.discard(id(node))
    sizes[id(node)] = total
    return total
