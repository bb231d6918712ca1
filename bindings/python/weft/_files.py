# SPDX-License-Identifier: Apache-2.0
"""The files of a set, from items such as folders and patterns, and whose each is: by the rules and with
the texts of trainer/readers/files.h. A test runs both on the same folders. Paths are bytes here, which
sort as in C."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import re
import stat
import zlib
from typing import IO, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union, cast

from weft.errors import DataError, InvalidError, UnsupportedError

Items = Union[str, Sequence[str]]

_PATH_BYTES = 4096  # of a name, with a zero byte
_LIST_BYTES_MAX = 256 << 20
_PIECE_BYTES = 128 << 10
_GLOB_ERR, _GLOB_NOSORT, _GLOB_NOSPACE, _GLOB_NOMATCH = 1, 4, 1, 3
_COMMENT = re.compile(rb"(\A|[ \t]+)#.*", re.DOTALL)  # of a line in a list file
# Without "-of-" it has five digits: more may be a date.
_NUMBER = re.compile(rb"-([0-9]{5}|[1-9][0-9]{5,8}(?=-of-))(?:-of-([0-9]{5}|[1-9][0-9]{5,8}))?(\.[^/]*)?\Z")


class _File(NamedTuple):
    path: bytes
    is_found: bool  # in a folder or by a pattern; else somebody named this very file


# --- packed files ---


class _Gunzip(io.RawIOBase):
    """The text of a gzip file: members, one after the other, and nothing else."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = open(path, "rb")
        self._stored = b""
        self._stream: Any = None  # of the member that has begun

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def _refuse(self, why: str) -> DataError:
        return DataError("%s: the gzip data %s" % (self._path, why))

    def readinto(self, out: Any) -> int:
        while True:
            if not self._stored:
                self._stored = self._file.read(_PIECE_BYTES)
            if self._stream is None:
                if len(self._stored) == 1:
                    self._stored += self._file.read(_PIECE_BYTES)
                if not self._stored:
                    return 0
                if not self._stored.startswith(b"\x1f\x8b"):
                    raise self._refuse("are over, but more bytes follow them")
                self._stream = zlib.decompressobj(31)
            is_at_end = not self._stored
            try:
                text = self._stream.decompress(self._stored, len(out))
            except zlib.error as error:
                raise self._refuse("are damaged (%s)" % error) from None
            self._stored = self._stream.unconsumed_tail
            if self._stream.eof:
                self._stored = self._stream.unused_data
                self._stream = None
            elif is_at_end and not text:
                raise self._refuse("end too early: the file is truncated")
            if text:
                out[: len(text)] = text
                return len(text)


def open_unpacked(path: str, mode: str = "rb") -> IO[Any]:
    """Opens a file for reading, by a mode of open(). What is packed is recognised by its first bytes."""
    with open(path, "rb") as file:
        head = file.read(4)
    magic = int.from_bytes(head, "little") if len(head) == 4 else 0
    if magic == 0xFD2FB528 or magic & ~15 == 0x184D2A50:
        raise UnsupportedError(
            "%s: is packed with zstd, which Python cannot unpack; "
            "weft data convert --to=text --compressor=gzip packs it anew" % path
        )
    if not head.startswith(b"\x1f\x8b"):
        return open(path, mode)
    unpacked = io.BufferedReader(_Gunzip(path), _PIECE_BYTES)
    return cast(IO[Any], unpacked if "b" in mode else io.TextIOWrapper(unpacked))


# --- items become files ---


class _Glob(ctypes.Structure):
    _fields_ = [("count", ctypes.c_size_t), ("path", ctypes.POINTER(ctypes.c_char_p)), ("rest", ctypes.c_char * 256)]


def _glob(pattern: bytes, where: str, flags: int) -> List[bytes]:
    """The C library's, whose patterns are not quite those of Python's."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = _Glob()
    code = libc.glob(pattern, flags, None, ctypes.byref(found))
    error = ctypes.get_errno()
    paths = [found.path[i] for i in range(found.count)] if code == 0 else []
    libc.globfree(ctypes.byref(found))
    if code == _GLOB_NOSPACE:
        raise MemoryError("%s%s: no memory" % (where, os.fsdecode(pattern)))
    if code not in (0, _GLOB_NOMATCH):
        raise _failure(error, where, pattern, ": cannot be read")
    return [path for path in paths if path is not None]


def _failure(error: int, where: str, path: bytes, what: str = "") -> Exception:
    text = "%s%s%s" % (where, os.fsdecode(path), what)
    if error in (errno.ENOENT, errno.ENOTDIR):
        return DataError("%s: %s" % (text, os.strerror(error)))
    return OSError(error, os.strerror(error), text)


def _is_pattern(name: bytes) -> bool:
    return any(c in name for c in (b"*", b"?", b"["))


def _is_there(path: bytes) -> bool:
    try:
        os.stat(path)
    except OSError:
        return False
    return True


def _found(paths: Sequence[bytes], item: bytes, where: str) -> List[_File]:
    """Of what is in a folder or matches a pattern, what counts."""
    files: List[_File] = []
    for path in paths:
        name = path.rpartition(b"/")[2]
        if name.startswith(b".") or any(name.endswith(end) and name != end for end in (b".lock", b".list")):
            continue
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            raise _failure(error.errno or 0, where, path) from None
        if stat.S_ISREG(mode):
            files.append(_File(path, True))
    if not files:
        raise DataError(
            "%s%s: no regular file is there; names that begin with a dot or end in .lock or .list do not count"
            % (where, os.fsdecode(item))
        )
    return sorted(files)


def _listed_item(path: bytes, name: bytes, where: str) -> bytes:
    """A name of a list file: as it is, or, if nothing is there, beside the list file."""
    if name.endswith(b".list") and name != b".list":
        raise DataError("%s%s: a list file may not name another one" % (where, os.fsdecode(name)))
    is_there = _is_there(name) or (_is_pattern(name) and bool(_glob(name, where, _GLOB_NOSORT)))
    folder = path[: path.rfind(b"/") + 1]
    if is_there or name.startswith(b"/") or not folder:
        return name
    return folder + name if _is_pattern(name) or _is_there(folder + name) else name


def _list(path: bytes) -> List[_File]:
    with open_unpacked(os.fsdecode(path)) as file:
        text = file.read(_LIST_BYTES_MAX + 1)
    if len(text) > _LIST_BYTES_MAX:
        raise DataError("%s: has more than %d bytes" % (os.fsdecode(path), _LIST_BYTES_MAX))
    files: List[_File] = []
    for number, line in enumerate(text.split(b"\n"), 1):
        name = line[:-1] if line.endswith(b"\r") else line
        where = "%s: line %d: " % (os.fsdecode(path), number)
        name = _COMMENT.sub(b"", name)
        if not name:
            continue
        if len(name) >= _PATH_BYTES or b"\0" in name:
            raise DataError(
                "%sis no name of a file: it has a zero byte, or more than %d bytes" % (where, _PATH_BYTES - 1)
            )
        files += _item(_listed_item(path, name, where), where)
    if not files:
        raise DataError("%s: names no file" % os.fsdecode(path))
    return files


def _item(item: bytes, where: str = "") -> List[_File]:
    try:
        mode = os.stat(item).st_mode
    except OSError as error:
        if error.errno == errno.ENOENT and _is_pattern(item):
            return _found(_glob(item, where, _GLOB_ERR | _GLOB_NOSORT), item, where)
        raise _failure(error.errno or 0, where, item) from None
    if stat.S_ISDIR(mode):
        folder = item if item.endswith(b"/") else item + b"/"
        return _found([folder + name for name in os.listdir(item)], item, where)
    if not stat.S_ISREG(mode):
        raise DataError("%s%s: is neither a regular file nor a folder" % (where, os.fsdecode(item)))
    if item.endswith(b".list") and item != b".list":
        return _list(item)
    return [_File(item, False)]


def _list_items(items: Items) -> List[_File]:
    """The files of all items, in the order of the items."""
    files: List[_File] = []
    for item in items.split(",") if isinstance(items, str) else items:
        name = os.fsencode(item)
        if not name or len(name) >= _PATH_BYTES or b"\0" in name:
            raise DataError(
                "%.60r: has an empty name, or one with a zero byte or of more than %d bytes" % (items, _PATH_BYTES - 1)
            )
        files += _item(name)
    if not files:
        raise DataError("%r: names no file" % (items,))
    paths = sorted(file.path for file in files)
    for before, path in zip(paths, paths[1:]):
        if before == path:
            raise DataError("%s: is in the set twice" % os.fsdecode(path))
    return files


# --- whose they are ---


class _Numbered(NamedTuple):
    path: bytes
    stem: bytes
    number: int
    of: Optional[int]
    extension: bytes

    def group(self) -> Tuple[int, bytes, int, int, bytes]:
        """Files of a set are of one kind; some may be packed, and others not."""
        kind = re.sub(rb"\.(gz|zst)\Z", b"", self.extension)
        return len(self.stem), self.stem, self.of or 0, len(kind), kind


def _numbered(path: bytes) -> Optional[_Numbered]:
    match = _NUMBER.search(path, path.rfind(b"/") + 1)
    if match is None:
        return None
    number, of, extension = match.groups()
    return _Numbered(path, path[: match.start()], int(number), None if of is None else int(of), extension or b"")


def _findings(group: Sequence[_Numbered]) -> Iterator[str]:
    """What is wrong with the files of a group, sorted by number. `of` is the number of files here, the
    highest number in sets of the original."""
    first = group[0]
    of = first.of or 0
    end = of + any(file.number == of for file in group)

    def name(number: int) -> str:
        return "-%05d-of-%05d%s" % (number, of, os.fsdecode(first.extension))

    def gap(start: int, last: int) -> str:
        begin = os.fsdecode(first.stem) + name(start)
        if start == last:
            return "%s: is missing; name the files one by one to do without it" % begin
        return "%s to %s: %d files are missing; name the files one by one to do without them" % (
            begin, name(last), last - start + 1,
        )  # fmt: skip

    want = 0
    before = first.path
    for file in group:
        if file.number >= end:
            break
        if file.number < want:
            yield "%s: is there twice, packed and not: %s" % (os.fsdecode(file.path), os.fsdecode(before))
        elif file.number > want:
            yield gap(want, file.number - 1)
        want = file.number + 1
        before = file.path
    if want < end:
        yield gap(want, end - 1)
    for file in group:
        if file.number >= end:
            yield "%s: is one file too many: by their names there are %d" % (os.fsdecode(file.path), of)


def _check_whole(files: Sequence[_File]) -> None:
    groups: Dict[Tuple[int, bytes, int, int, bytes], List[_Numbered]] = {}
    for path in sorted(file.path for file in files if file.is_found):
        file = _numbered(path)
        if file is not None and file.of is not None:
            groups.setdefault(file.group(), []).append(file)
    for key in sorted(groups):
        for text in _findings(sorted(groups[key], key=lambda file: file.number)):
            raise DataError(text)


def share(items: Items, trainer_count: int, trainer_id: int) -> List[str]:
    """The trainer's files, by the rule of --data_split=files, in the order of the items."""
    if not 0 <= trainer_id < trainer_count:
        raise InvalidError("trainer_id=%r: is from 0 to %r" % (trainer_id, trainer_count - 1))
    files = _list_items(items)
    _check_whole(files)
    number = {path: i for i, path in enumerate(sorted(file.path for file in files))}
    numbered = [_numbered(file.path) for file in files]
    if all(file is not None for file in numbered):
        number = {file.path: file.number for file in numbered if file is not None}
    mine = [os.fsdecode(file.path) for file in files if number[file.path] % trainer_count == trainer_id]
    if not mine:
        raise DataError("none of the %d files is that of trainer %d of %d" % (len(files), trainer_id, trainer_count))
    return mine
