# SPDX-License-Identifier: Apache-2.0
"""libweft as ctypes sees it: found, and described by its own headers.

Structs, enums and prototypes are read out of weft/*.h when this module is loaded, so there is no
second description of them that could fall behind; what the library says of the size of its options
tells whether these headers are its own. The headers are written in a plain way (one declaration a
line or a run of lines that ends with a semicolon), and whatever this reader does not know stops it.
"""

from __future__ import annotations

import ctypes
import glob
import os
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

_HEADERS = ("status.h", "weft.h", "members.h", "restart.h", "sparse.h")
_SONAME = "libweft.so.0"

_SCALARS: Dict[str, Any] = {
    "void": None,
    "bool": ctypes.c_bool,
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "uint8_t": ctypes.c_uint8,
    "uint16_t": ctypes.c_uint16,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
}
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(r"^#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_DEFINE = re.compile(r"^#define (WEFT_\w+) (\d+)$", re.MULTILINE)
_ENUM = re.compile(r"\benum (\w+) \{(.*?)\};", re.DOTALL)
_STRUCT = re.compile(r"\bstruct (\w+) \{(.*?)\};", re.DOTALL)
_FUNCTION = re.compile(r"\bWEFT_API\b([^;]*?)\b(weft_\w+)\(([^;]*?)\)\s*(?:WEFT_MUST_CHECK)?;", re.DOTALL)
_CALLBACK = re.compile(r"^(.*?)\(\*(\w+)\)\((.*)\)$", re.DOTALL)
_ARRAY = re.compile(r"^(\w+)\[(\w+)\]$")


class Api:
    """The functions of the library, and what its headers say."""

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        self.path = path
        self.functions = library
        self.constants: Dict[str, int] = {}
        self.enums: Dict[str, Dict[str, int]] = {}
        self.structs: Dict[str, Any] = {}

    def type_of(self, text: str) -> Any:
        """The ctypes type of a C type's text."""
        words = text.replace("const", " ").replace("*", " * ").split()
        pointers = words.count("*")
        names = [word for word in words if word != "*"]
        if pointers == 1 and names == ["char"]:
            return ctypes.c_char_p
        if pointers > 0:
            return ctypes.c_void_p
        if names[0] == "enum":
            return ctypes.c_int
        if names[0] == "struct":
            return self.structs[names[1]]
        if len(names) != 1 or names[0] not in _SCALARS:
            raise ImportError("weft: the type '%s' in its headers is not known here" % text.strip())
        return _SCALARS[names[0]]

    def parameters(self, text: str) -> List[Any]:
        """The types of a parameter list; each parameter has a name, which is left out."""
        if text.strip() in ("", "void"):
            return []
        return [self.type_of(re.sub(r"\w+\s*$", "", part)) for part in text.split(",")]

    def fields(self, body: str) -> Iterator[Tuple[str, Any]]:
        """Names and types of the fields of a struct."""
        for line in body.split(";"):
            line = " ".join(line.split())
            if not line:
                continue
            callback = _CALLBACK.match(line)
            if callback:
                result = self.type_of(callback.group(1))
                yield callback.group(2), ctypes.CFUNCTYPE(result, *self.parameters(callback.group(3)))
                continue
            first, *more = line.split(",")
            words = re.match(r"^(.*?[\s*])(\w+(?:\[\w+\])?)$", first)
            if words is None:
                raise ImportError("weft: the field '%s' in its headers is not known here" % line)
            kind = self.type_of(words.group(1))
            for name in [words.group(2)] + [name.strip() for name in more]:
                array = _ARRAY.match(name)
                if array:
                    count = array.group(2)
                    yield array.group(1), kind * (self.constants.get(count) or int(count))
                else:
                    yield name, kind

    def read(self, text: str) -> None:
        """Take in one header."""
        for name, value in _DEFINE.findall(text):
            self.constants[name] = int(value)
        text = _DIRECTIVE.sub("", _COMMENT.sub(" ", text))
        for name, body in _ENUM.findall(text):
            pairs = re.findall(r"(\w+)\s*=\s*(\d+)", body)
            self.enums[name] = {key: int(value) for key, value in pairs}
        for name, body in _STRUCT.findall(text):
            self.structs[name] = type(name, (ctypes.Structure,), {"_fields_": list(self.fields(body))})
        for result, name, parameters in _FUNCTION.findall(text):
            function = getattr(self.functions, name, None)
            if function is None:
                raise ImportError("weft: %s has no %s: it is older than its headers" % (self.path, name))
            function.restype = self.type_of(result)
            function.argtypes = self.parameters(parameters)


def _around() -> Iterator[str]:
    """Folders above this package: a checkout, or a prefix that it is installed under."""
    folder = os.path.dirname(os.path.abspath(__file__))
    while os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        yield folder


def _find_library() -> str:
    """WEFT_LIBRARY; of a wheel, what was packed with it; of a checkout, what was built in build/; of a
    prefix, what is installed in it; else what the dynamic linker finds."""
    named = os.environ.get("WEFT_LIBRARY")
    if named:
        return named
    packed = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_library", _SONAME)
    if os.path.exists(packed):
        return packed
    for folder in _around():
        for pattern in ("build/trainer", "lib", "lib64", "lib/*"):
            found = glob.glob(os.path.join(folder, pattern, _SONAME))
            if found:
                return found[0]
    return _SONAME


def _find_headers(library: str) -> str:
    """Those that were packed with this package, of the checkout, or beside the library."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, "_headers")]
    if os.path.sep in library:
        folder = os.path.dirname(os.path.abspath(library))
        places += [os.path.join(folder, up, "include", "weft") for up in ("..", "../..")]
    places += [os.path.join(folder, "include", "weft") for folder in _around()]
    places += ["/usr/local/include/weft", "/usr/include/weft"]
    for place in places:
        if os.path.isfile(os.path.join(place, _HEADERS[-1])):
            return place
    raise ImportError("weft: its headers are not found in any of " + ", ".join(places))


def load() -> Api:
    """Find the library and read its headers.

    Raises ImportError, which says what was looked for and how to name it."""
    path = _find_library()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            "weft: %s; build it, or name the file in WEFT_LIBRARY" % error
        ) from error
    api = Api(library, path)
    folder = _find_headers(path)
    for name in _HEADERS:
        with open(os.path.join(folder, name), encoding="ascii") as file:
            api.read(file.read())
    _check_sizes(api, folder)
    return api


def _check_sizes(api: Api, folder: str) -> None:
    """The library takes structs of an older header, and none that is larger than its own. It writes
    the size of its options into memory that is large enough for any."""
    for name in ("weft_session_opts", "weft_table_opts"):
        room = (ctypes.c_char * 65536)()
        getattr(api.functions, name + "_init")(ctypes.byref(room))
        size = ctypes.c_size_t.from_buffer(room).value
        described = ctypes.sizeof(api.structs[name])
        if size < described:
            raise ImportError(
                "weft: struct %s has %d bytes in %s and %d in the headers of %s: use the headers "
                "that the library was built with, or older ones" % (name, size, api.path, described, folder)
            )


_api: Optional[Api] = None


def api() -> Api:
    """The one library of this process."""
    global _api
    if _api is None:
        _api = load()
    return _api
