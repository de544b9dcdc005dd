"""Observes the options of a program: what its user can give on the command line or in the environment, with its values.

The words of the command line in `sys.argv` are no options here: whoever reads them, names `argv`.
"""

from __future__ import annotations

import argparse
import optparse
import os
import sys
from collections.abc import Mapping
from typing import Any

from .context import Context
from .events import OptionRead
from .patching import Call

LONGEST_VALUE = 400
MOST_OPTIONS = 500
OF_PACKAGE = "absl"  # whose own flags are no options of the program


class Options:
    def __init__(self, context: Context) -> None:
        self.context = context

    def watch(self) -> None:
        wrap = self.context.patches.wrap
        wrap(argparse.ArgumentParser, "add_argument", after=self.argument_added)
        wrap(argparse.ArgumentParser, "parse_known_args", after=self.arguments_parsed)
        wrap(optparse.OptionParser, "parse_args", after=self.options_parsed)
        wrap(type(os.environ), "__getitem__", before=self.environment_read)

    def watch_absl(self) -> None:
        flags = sys.modules["absl.flags"]
        self.context.patches.wrap(flags.FlagValues, "__call__", after=self.flags_parsed)

    def watch_click(self) -> None:
        """Watches click, and typer, which is made of it."""
        click = sys.modules["click"]
        self.context.patches.wrap(click.Command, "make_context", after=self.command_parsed)

    def watch_fire(self) -> None:
        fire = sys.modules["fire"]
        self.context.patches.wrap(fire, "Fire", before=self.function_given)

    def watch_docopt(self) -> None:
        docopt = sys.modules["docopt"]
        self.context.patches.wrap(docopt, "docopt", after=self.usage_parsed)

    # What each package has parsed

    def argument_added(self, action: Any, call: Call) -> None:
        """Reports an option before it has a value: it gets none if it is not given, and its default is SUPPRESS."""
        self.report({action.dest: None})

    def arguments_parsed(self, result: Any, call: Call) -> None:
        self.report(vars(result[0]))

    def options_parsed(self, result: Any, call: Call) -> None:
        self.report(vars(result[0]))

    def flags_parsed(self, _: Any, call: Call) -> None:
        modules = call.owner.flags_by_module_dict().items()
        own = [flag for name, flags in modules for flag in flags if not is_of_absl(name)]
        self.report({flag.name: flag.value for flag in own})

    def command_parsed(self, result: Any, call: Call) -> None:
        self.report(result.params)

    def function_given(self, call: Call) -> None:
        """Reports the parameters of the function, or of the methods, of which fire makes a command."""
        given = call["component"]
        parts = given if isinstance(given, dict) else getattr(given, "__dict__", {})
        functions = [given, *parts.values()]
        codes = [getattr(each, "__code__", None) for each in functions]
        names = [name for code in codes if code for name in code.co_varnames[: code.co_argcount]]
        self.report(dict.fromkeys(names))

    def usage_parsed(self, result: Any, call: Call) -> None:
        self.report({name.strip("-<>"): value for name, value in result.items()})

    def environment_read(self, call: Call) -> None:
        """Reports what is not there; other values may be secrets, and are the same whenever the program is started."""
        if isinstance(call["key"], str) and call["key"] not in os.environ:
            self.report({call["key"]: None})

    def report(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            text = "" if value is None else str(value)[:LONGEST_VALUE]
            is_new = self.context.is_first("option", name, text)
            if is_new and self.context.count("options") <= MOST_OPTIONS:
                self.context.emit(OptionRead(name, text))


def is_of_absl(module: str) -> bool:
    return module.partition(".")[0] == OF_PACKAGE
