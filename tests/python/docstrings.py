# SPDX-License-Identifier: Apache-2.0
"""Which public names of the package have no docstring, or one that leaves out a parameter."""

import importlib
import inspect
import pkgutil
import re

import weft

NEED_TORCH = ("weft.distributed", "weft.embedding", "weft.torch")
# Objects of these are made by weft alone: nobody else calls their __init__.
MADE_BY_WEFT = ("ProcessGroupWeft", "Rows", "Table", "Tensor", "_Distributed")


def modules(with_torch):
    """The public modules that are, or are not, imported with PyTorch."""
    names = ["weft"] + [found.name for found in pkgutil.walk_packages(weft.__path__, "weft.") if "._" not in found.name]
    return [importlib.import_module(name) for name in names if (name in NEED_TORCH) == with_torch]


def public(module):
    """Its functions and classes: those in __all__, or those that it defines itself."""
    for name, value in sorted(vars(module).items()):
        if name in getattr(module, "__all__", [name]) and (inspect.isclass(value) or inspect.isfunction(value)):
            if hasattr(module, "__all__") or (name[0] != "_" and value.__module__ == module.__name__):
                yield "%s.%s" % (module.__name__, name), value


def methods(kind):
    """Those that the package defines, of bases that have no public name too."""
    for base in kind.__mro__:
        if base.__module__.split(".")[0] == "weft":
            for name, value in vars(base).items():
                function = getattr(value, "__func__", getattr(value, "fget", value))
                if name[0] != "_" and inspect.isfunction(function):
                    yield name, value.__doc__, function


def left_out(function, *texts):
    """The parameters that none of the texts names, nor what they refer to with "see weft.NAME"."""
    text = " ".join(texts)
    text += " ".join(getattr(weft, name).__doc__ for name in re.findall(r"\bsee weft\.(\w+)", text))
    names = [name for name in inspect.signature(function).parameters if name != "self" and name[0] != "_"]
    return [name for name in names if not re.search(r"\b%s\b" % name, text)]


def of_function(name, doc, function, about=""):
    """What is missing in the docstring of a function, or of a method of a class that `about` describes."""
    if not doc:
        return ["%s has no docstring" % name]
    return ["%s: its docstring leaves out %s" % (name, which) for which in left_out(function, doc, about)]


def of_class(name, kind):
    """What is missing in the docstrings of a class and its methods."""
    doc = vars(kind).get("__doc__")
    if not doc:
        return ["%s has no docstring" % name]
    found = []
    if "__init__" in vars(kind) and kind.__name__ not in MADE_BY_WEFT:
        found = of_function(name, doc, kind.__init__)
    for method, text, function in methods(kind):
        found += of_function("%s.%s" % (name, method), text, function, doc)
    return found


def missing(with_torch):
    """(the number of names that were looked at, what is missing)"""
    found = ["%s has no docstring" % module.__name__ for module in modules(with_torch) if not module.__doc__]
    names = {name: value for module in modules(with_torch) for name, value in public(module)}
    if with_torch:  # what weft.torch.DistributedOptimizer adds to the class of an optimizer
        names["DistributedOptimizer()"] = importlib.import_module("weft.torch._optimizer")._Distributed
    count = 0
    for name, value in names.items():
        is_class = inspect.isclass(value)
        found += of_class(name, value) if is_class else of_function(name, value.__doc__, value)
        count += 1 + len(list(methods(value))) if is_class else 1
    return count, found
