"""Base class of the records that are read from files, and one-line messages of their errors."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

_IN_LIST = re.compile(r"[a-z_]+\.\d+[.:]")
_LONGEST = 200  # characters of a value that are shown


class Record(BaseModel):
    """Immutable record; an unknown key or a number that is not finite is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _key_path(loc: tuple[int | str, ...]) -> list[str]:
    """Keys in the file that lead to an error, without the union tags that pydantic inserts."""
    match loc:
        case ("arrivals", _, *rest):
            loc = ("arrivals", *rest)
        case ("changes", int(i), _, *rest):
            loc = ("changes", i, *rest)
        case ("types", int(i), "size", _, *rest):
            loc = ("types", i, "size", *rest)
    return [str(part) for part in loc if part != "[key]"]


def _message(error: ErrorDetails) -> str:
    """Message of an error; in terms of TOML where pydantic's message mentions Python types."""
    context = error.get("ctx", {})
    match error["type"]:
        case "model_type" if context["class_name"] == "Choice":
            return "should be a number or { values = [...], p = [...] }"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "should be a table"
        case "tuple_type":
            return "should be a list ([[ ]] makes one of tables)"
        case "too_long":
            return f"should have at most {context['max_length']} entries"
        case "union_tag_not_found":
            return f"{context['discriminator']} is missing"
    return error["msg"].removeprefix("Value error, ")


def _shown(value: object) -> str:
    """Text of a value for an error message, cut off after _LONGEST characters."""
    try:
        text = repr(value)
    except ValueError:  # a number of too many digits, written in hexadecimal
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def one_line(exc: ValidationError) -> str:
    """First error of a validation as one line: key, problem and invalid value."""
    error = exc.errors(include_url=False)[0]
    path, message = _key_path(error["loc"]), _message(error)
    joint = "." if _IN_LIST.match(message) else ": "  # the message may begin with the inner keys
    key = ".".join(path) + joint if path else ""
    if error["type"] == "extra_forbidden":
        return f"{key}unknown key; remove it or correct its spelling"
    if error["type"] in ("missing", "value_error", "union_tag_not_found"):
        return f"{key}{message[:1].lower()}{message[1:]}"
    return f"{key}{message[:1].lower()}{message[1:]}, not {_shown(error['input'])}"
