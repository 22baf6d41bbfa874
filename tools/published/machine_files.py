"""Machine files (docs/targets.md) as nested dicts: the part of YAML that they use, read and written again.

Maps in block or flow style, plain or quoted scalars, comments. Numbers stay text until somebody asks for one.
"""


class BadFile(Exception):
    """What the file is and what is wrong in it, in one line."""


def _without_comment(line):
    quote = None
    for i, char in enumerate(line):
        if quote:
            quote = None if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#" and (i == 0 or line[i - 1] in " \t"):
            return line[:i]
    return line


def _scalar(text):
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _split(text, separator):
    """Parts of a flow style text between separators that stand in no quotes and no braces."""
    parts, depth, quote, begin = [], 0, None, 0
    for i, char in enumerate(text):
        if quote:
            quote = None if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
            if separator == ":":
                break
    parts.append(text[begin:])
    return parts


def _value(text, where):
    text = text.strip()
    if not text.startswith("{"):
        return _scalar(text)
    if not text.endswith("}"):
        raise BadFile(f"{where}: a map in braces stands in one line")
    result = {}
    for item in _split(text[1:-1], ","):
        if item.strip():
            key, *rest = _split(item, ":")
            if not rest:
                raise BadFile(f"{where}: '{item.strip()}' is no key and value")
            result[_scalar(key)] = _value(rest[0], where)
    return result


def parse(text, name):
    root = {}
    open_maps = [(-1, root)]  # indentation of their keys' parent
    for number, whole in enumerate(text.splitlines(), 1):
        line = _without_comment(whole).rstrip()
        if not line.strip():
            continue
        where = f"{name}:{number}"
        indent = len(line) - len(line.lstrip(" "))
        key, *rest = _split(line.strip(), ":")
        if not rest:
            raise BadFile(f"{where}: '{line.strip()}' is no key and value")
        while open_maps[-1][0] >= indent:
            open_maps.pop()
        parent = open_maps[-1][1]
        if rest[0].strip():
            parent[_scalar(key)] = _value(rest[0], where)
        else:
            parent[_scalar(key)] = child = {}
            open_maps.append((indent, child))
    return root


def read(path):
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadFile(f"{path}: not UTF-8: {error}") from error


def write(machine, indent=0):
    lines = []
    for key, value in machine.items():
        if isinstance(value, dict):
            lines.append(f"{' ' * indent}{key}:")
            lines.append(write(value, indent + 2).rstrip("\n"))
        elif isinstance(value, str) and (value == "" or value.strip(".-0123456789e") or ":" in value):
            quoted = value.replace('"', "'")
            lines.append(f'{" " * indent}{key}: "{quoted}"')
        else:
            lines.append(f"{' ' * indent}{key}: {value}")
    return "\n".join(lines) + "\n"


def get(machine, path, otherwise=None):
    for key in path.split("."):
        if not isinstance(machine, dict) or key not in machine:
            return otherwise
        machine = machine[key]
    return machine


def put(machine, path, value):
    """A copy with this value in place of the one at `path`."""
    key, _, rest = path.partition(".")
    copy = dict(machine)
    copy[key] = put(machine.get(key, {}), rest, value) if rest else value
    return copy


def scale(machine, path, factor):
    """A copy in which all numbers at and below `path`, but for sources, are `factor` times what they are."""
    def scaled(value):
        if isinstance(value, dict):
            return {key: inner if key == "source" else scaled(inner) for key, inner in value.items()}
        return f"{float(value) * factor:.9g}"
    found = get(machine, path)
    return machine if found is None else put(machine, path, scaled(found))
