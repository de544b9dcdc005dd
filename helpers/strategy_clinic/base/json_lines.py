"""JSON with a line for each item, so that a difference between two files can be read."""

import json
from typing import Any


def line_by_line(values: dict[str, Any]) -> str:
    """Returns JSON with a line for each item, so that a difference between two files can be read."""
    lines = [f"{as_json(name)}: {spread(value)}" for name, value in values.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def spread(value: Any) -> str:
    if isinstance(value, dict):
        items = [f"{as_json(name)}: {as_json(item)}" for name, item in value.items()]
        return "{\n" + ",\n".join(items) + "\n}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(as_json, value)) + "\n]"
    return as_json(value)


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
