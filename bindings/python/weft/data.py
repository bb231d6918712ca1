# SPDX-License-Identifier: Apache-2.0
"""Files of samples for trainers, as paddle.v2.dataset.common had them.

    import weft.data
    weft.data.split(reader, line_count=1000, suffix="train-%05d.pickle")
    mine = weft.data.cluster_files_reader("train-*.pickle", trainer_count=4, trainer_id=1)
    for sample in mine(): ...

A `reader` is a function without arguments that returns an iterator over samples. Every sample is
written once and read by one trainer. (The original wrote a sample too many to the first file, and its
recordio reader went on after a damaged chunk.)

The default loader is pickle's. A pickle runs what its author put into it: load none from somebody
you do not trust, and give another loader and dumper (json, numpy) where files travel. Files appear
under their names when all of them are whole, and replace others only with force=True, which also
removes what is left of an older set of the same name.
docs/data.md has the rules by which files are named and belong to trainers, and the command `weft
data`, which has the same. Any thread may call these functions. What a reader or dumper raises passes
through, as does OSError of a file; of a loader weft.Error, OSError and MemoryError, and the rest becomes
DataError with the file's name."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import random
import re
import stat
from typing import IO, Any, Callable, Iterable, Iterator, List, Optional, Sequence, Union

from weft import _files, _recordio
from weft.errors import DataError, Error, InvalidError

__all__ = ["cluster_files_reader", "convert", "recordio_reader", "split"]

Reader = Callable[[], Iterable[Any]]


class _Target:
    """Files under hidden names, which get their own together."""

    def __init__(self, force: bool) -> None:
        self._force = force
        self._hidden: List[str] = []
        self._made: List[str] = []  # folders

    def create(self, folder: str, mode: str) -> IO[Any]:
        """A new file, to be closed by `close`. Makes its folder, but none that this one is in."""
        if folder and not os.path.isdir(folder):
            os.mkdir(folder)
            self._made.append(folder)
            self._sync(os.path.dirname(os.path.abspath(folder)))
        hidden = os.path.join(folder or ".", ".weft-%d-%016x" % (os.getpid(), random.SystemRandom().getrandbits(64)))
        file = open(hidden, mode.replace("w", "x"))
        self._hidden.append(hidden)
        return file

    @staticmethod
    def _sync(folder: str) -> None:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(fd)
        os.close(fd)

    @staticmethod
    def close(file: IO[Any]) -> None:
        file.flush()
        os.fsync(file.fileno())
        file.close()

    def check(self, names: Iterable[str]) -> None:
        """What may be replaced or removed is a file: a link or a device is not."""
        for name in names:
            if os.path.lexists(name) and not self._force:
                raise FileExistsError("%s: exists; force=True replaces it" % name)
            if os.path.lexists(name) and not stat.S_ISREG(os.lstat(name).st_mode):
                raise FileExistsError("%s: is no regular file, and is not replaced" % name)

    def finish(self, names: Sequence[str], others: Iterable[str]) -> None:
        """Gives each file its name, in the order in which they were created. Then it removes `others`, files
        of an older set: beside the new one their samples would be read a second time."""
        others = sorted(set(others) - set(names))
        self.check([*names, *others])
        for hidden, name in zip(list(self._hidden), names):
            if self._force:
                os.replace(hidden, name)
            else:
                os.link(hidden, name)  # refuses one that has appeared in the meantime
                os.unlink(hidden)
            self._hidden.remove(hidden)
        for folder in {os.path.dirname(name) or "." for name in names}:
            self._sync(folder)
        for name in others:
            os.unlink(name)

    def __enter__(self) -> _Target:
        return self

    def __exit__(self, *_: object) -> None:
        for hidden in self._hidden:
            try:
                os.unlink(hidden)
            except FileNotFoundError:
                pass
        for folder in self._made:
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # stays where a file is in it


@contextlib.contextmanager
def _record_file(
    target: _Target, folder: str, dumper: Callable[[Any], bytes], compressor: str
) -> Iterator[Callable[[Any], None]]:
    """A new RecordIO file; what it gives writes a sample."""
    with target.create(folder, "wb") as file:
        writer = _recordio.Writer(file, compressor)

        def write(sample: Any) -> None:
            record = dumper(sample)
            if not isinstance(record, (bytes, bytearray, memoryview)):
                raise InvalidError(
                    "dumper=%s: returned %s, but a record is bytes; give a dumper= that encodes it, such as "
                    "lambda sample: json.dumps(sample).encode()" % (_name_of(dumper), type(record).__name__)
                )
            writer.write(bytes(record))

        yield write
        writer.finish()
        target.close(file)


def _name_of(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def _unfit(where: str, loader: Any, error: Exception, remedy: str) -> DataError:
    return DataError(
        "%s: loader=%s: %s: %s; give the loader= that fits the dumper= of this file%s"
        % (where, _name_of(loader), type(error).__name__, error, remedy)
    )


# What a loader passes on, for it has a file, argument or number in it: the rest names none.
_CLEAR = (Error, MemoryError, OSError)


def _batches(reader: Reader, line_count: int) -> Iterator[List[Any]]:
    """Lists of `line_count` samples; the last may have fewer, and none is empty."""
    if line_count < 1 or line_count % 1 != 0:
        raise InvalidError("line_count=%r: is a whole number of at least 1" % (line_count,))
    batch: List[Any] = []
    for sample in reader():
        batch.append(sample)
        if len(batch) == line_count:
            yield batch
            batch = []
    if batch:
        yield batch


def _refuse_not_callable(**functions: Any) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise TypeError("%s should be callable" % name)


def split(
    reader: Reader,
    line_count: int,
    suffix: str = "%05d.pickle",
    dumper: Callable[[List[Any], IO[Any]], Any] = pickle.dump,
    mode: str = "wb",
    force: bool = False,
) -> List[str]:
    """Write the samples of a reader to files.

    reader      function without arguments that returns the samples
    line_count  samples in a file, at least 1; the last may have fewer
    suffix      path of the files, with one %d in its last part for their numbers from 0; the folder in
                front of that is made if it does not exist, but not the folder that this one is in
    dumper      called as dumper(list of samples, file)
    mode        of open(): "w" for dumpers that write text, such as json.dump
    force       replace files that exist, and remove those that follow them by number

    Returns the paths, none if there are no samples. cluster_files_reader reads them, with a loader that
    fits. FileExistsError: a file exists, without force; InvalidError: suffix or line_count, or the dumper
    does not fit the mode; TypeError: dumper is no function."""
    _refuse_not_callable(dumper=dumper)
    try:
        distinct = suffix % 0 != suffix % 1 and os.path.dirname(suffix % 0) == os.path.dirname(suffix % 1)
    except (TypeError, ValueError):
        distinct = False
    if not distinct:
        raise InvalidError(
            "suffix=%r: has to have one %%d in it, behind its folder, for the number of a file" % (suffix,)
        )
    names: List[str] = []
    with _Target(force) as target:
        target.check([suffix % 0])
        for samples in _batches(reader, line_count):
            names.append(suffix % len(names))
            file = target.create(os.path.dirname(names[-1]), mode)
            with file:
                try:
                    dumper(samples, file)
                except TypeError as error:
                    raise InvalidError(
                        '%s: dumper=%s with mode=%r: %s; a dumper that writes text needs mode="w", one that '
                        'writes bytes mode="wb"' % (names[-1], _name_of(dumper), mode, error)
                    ) from error
                target.close(file)
        behind = (suffix % number for number in itertools.count(len(names)))
        target.finish(names, itertools.takewhile(os.path.lexists, behind))
    return names


def cluster_files_reader(
    files_pattern: Union[str, Sequence[str]],
    trainer_count: int,
    trainer_id: int,
    loader: Callable[[IO[Any]], Iterable[Any]] = pickle.load,
    mode: str = "rb",
) -> Reader:
    """A reader of the samples in one trainer's files of those that split() wrote.

    files_pattern  files, folders, patterns and list files (NAME.list) with commas between them, as of
                   --data, or a list of such
    trainer_count  number of trainers
    trainer_id     the trainer whose files are read, 0 .. trainer_count - 1
    loader         called as loader(file); returns the samples of a file. A file that is packed with
                   gzip, by its first bytes, is unpacked
    mode           of open(): "r" for loaders that read text, such as json.load

    Files whose names end in numbers (train-00003.pickle, part-00003-of-00010) belong to the trainer
    number modulo trainer_count; others by their places among the sorted names.
    TypeError: loader is no function. When the samples are read, InvalidError: trainer_id; DataError: no
    such file, none for this trainer, one that is missing in a set or damaged, or what the loader raised;
    UnsupportedError: a file packed with zstd."""
    _refuse_not_callable(loader=loader)

    def reader() -> Iterator[Any]:
        for path in _files.share(files_pattern, trainer_count, trainer_id):
            with _files.open_unpacked(path, mode) as file:
                try:
                    samples = iter(loader(file))
                except _CLEAR:
                    raise
                except Exception as error:
                    raise _unfit(path, loader, error, ', and mode="r" where it reads text') from error
            yield from samples

    return reader


def _sets_of(folder: str, prefix: str) -> List[str]:
    """The files of all sets of this prefix that are in the folder."""
    shape = re.compile(re.escape(prefix) + r"-[0-9]{5,9}-of-[0-9]{5,9}\Z")
    try:
        names = os.listdir(folder or ".")
    except FileNotFoundError:
        return []
    return sorted(os.path.join(folder, name) for name in names if shape.match(name))


def _deal(reader: Reader, writes: Sequence[Callable[[Any], None]]) -> None:
    """One sample to each file in turn."""
    count = 0
    for sample in reader():
        writes[count % len(writes)](sample)
        count += 1
    if count < len(writes):
        raise InvalidError("num_shards=%d: there are %d samples, too few for as many files" % (len(writes), count))


def convert(
    output_path: str,
    reader: Reader,
    line_count: Optional[int] = None,
    name_prefix: str = "",
    dumper: Callable[[Any], bytes] = pickle.dumps,
    compressor: str = "snappy",
    shuffle_seed: Optional[int] = None,
    force: bool = False,
    num_shards: Optional[int] = None,
) -> List[str]:
    """Write the samples of a reader to RecordIO files. Give one of line_count and num_shards.

    output_path   folder, which is made if it does not exist, but not the folder that it is in
    reader        function without arguments that returns the samples
    line_count    records in a file, at least 1; the last may have fewer. None: see num_shards
    num_shards    number of files, at least 1: one sample goes to each in turn, so that there have to be
                  as many. None: see line_count
    name_prefix   the files are called PREFIX-00000-of-00010 and so on
    dumper        called as dumper(sample); returns the bytes of a record
    compressor    "snappy" (needs libsnappy), "gzip" or "none"
    shuffle_seed  with line_count: shuffle the samples of each file, in an order that this number decides;
                  None: as they come. The original shuffled them, by chance.
    force         replace files that exist, and remove sets of the same PREFIX with another number of
                  files

    Returns the paths. recordio_reader and `weft data` read them. FileExistsError: a set of this PREFIX
    exists, without force; InvalidError: an argument, or a dumper that returns no bytes; UnsupportedError:
    libsnappy is not installed; TypeError: dumper is no function."""
    _refuse_not_callable(dumper=dumper)
    chance = random.Random(shuffle_seed)
    count = 0
    if (line_count is None) == (num_shards is None):
        raise InvalidError("line_count=%r, num_shards=%r: give one of them" % (line_count, num_shards))
    if num_shards is not None and num_shards < 1:
        raise InvalidError("num_shards=%r: is at least 1" % (num_shards,))
    if num_shards is not None and shuffle_seed is not None:
        raise InvalidError("shuffle_seed=%r: is for line_count; shuffle in the reader" % (shuffle_seed,))
    if not name_prefix or name_prefix.startswith(".") or "/" in name_prefix:
        raise InvalidError(
            "name_prefix=%r: must be the beginning of a file's name, without a dot in front" % (name_prefix,)
        )
    others = _sets_of(output_path, name_prefix)
    with _Target(force) as target:
        target.check(others)
        if num_shards is not None:
            count = num_shards
            with contextlib.ExitStack() as stack:
                files = [_record_file(target, output_path, dumper, compressor) for _ in range(count)]
                _deal(reader, [stack.enter_context(file) for file in files])
        for samples in _batches(reader, line_count) if line_count is not None else ():
            if shuffle_seed is not None:
                chance.shuffle(samples)
            with _record_file(target, output_path, dumper, compressor) as write:
                for sample in samples:
                    write(sample)
            count += 1
        names = [os.path.join(output_path, "%s-%05d-of-%05d" % (name_prefix, i, count)) for i in range(count)]
        target.finish(names, others)
    return names


def recordio_reader(
    paths: Union[str, Sequence[str]],
    trainer_count: int = 1,
    trainer_id: int = 0,
    loader: Optional[Callable[[bytes], Any]] = None,
) -> Reader:
    """A reader of the records in RecordIO files, those of the original's tools too.

    paths          files, folders, patterns and list files (NAME.list) with commas between them, as of
                   --data, or a list of such
    trainer_count  number of trainers
    trainer_id     the trainer whose files are read, as of cluster_files_reader: all, if there is one
    loader         called as loader(record); returns a sample. None: the samples are the bytes.
                   pickle.loads reads what convert() writes unless it was given another dumper.

    It raises what cluster_files_reader does. DataError names the file and the byte at which a damaged or
    truncated chunk begins. UnsupportedError: a chunk of snappy, and libsnappy is not installed."""
    if loader is not None:
        _refuse_not_callable(loader=loader)

    def reader() -> Iterator[Any]:
        for path in _files.share(paths, trainer_count, trainer_id):
            for number, record in enumerate(_recordio.read(path), 1):
                try:
                    sample = record if loader is None else loader(record)
                except _CLEAR:
                    raise
                except Exception as error:
                    remedy = ", or none: the samples are the bytes then"
                    raise _unfit("%s: record %d" % (path, number), loader, error, remedy) from error
                yield sample

    return reader
