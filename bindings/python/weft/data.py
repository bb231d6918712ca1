# SPDX-License-Identifier: Apache-2.0
"""Files of samples for trainers, as paddle.v2.dataset.common had them.

    import weft.data
    weft.data.split(reader, line_count=1000, suffix="train-%05d.pickle")
    mine = weft.data.cluster_files_reader("train-*.pickle", trainer_count=4, trainer_id=1)
    for sample in mine(): ...

A `reader` is a function without arguments that returns an iterator over samples. Every sample is
written once and read by one trainer; the original's first file had one too many, and its recordio
reader went on behind a damaged chunk.

The default loader is pickle's. A pickle runs what its author put into it: load none from somebody
you do not trust, and give another loader and dumper (json, numpy) where files travel. Files appear
under their names when all of them are whole, and replace others only with force=True.
docs/data.md has the rules by which files belong to trainers, and the command `weft data`."""

from __future__ import annotations

import glob
import os
import pickle
import random
import re
from typing import IO, Any, BinaryIO, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from weft import _recordio
from weft.errors import DataError, InvalidError

__all__ = ["cluster_files_reader", "convert", "recordio_reader", "split"]

Reader = Callable[[], Iterable[Any]]
# Without "-of-" it has five digits: more may be a date.
_NUMBER = re.compile(r"-(\d{5}|[1-9]\d{5,8}(?=-of-))(?:-of-(\d{5}|[1-9]\d{5,8}))?(\.[^/]*)?$")


class _Files:
    """Files under hidden names, which get their own together."""

    def __init__(self, force: bool) -> None:
        self._force = force
        self._hidden: List[str] = []

    def create(self, folder: str, mode: str) -> IO[Any]:
        """A new file, to be closed by `close`."""
        hidden = os.path.join(folder or ".", ".weft-%d-%016x" % (os.getpid(), random.SystemRandom().getrandbits(64)))
        file = open(hidden, mode.replace("w", "x"))
        self._hidden.append(hidden)
        return file

    @staticmethod
    def close(file: IO[Any]) -> None:
        file.flush()
        os.fsync(file.fileno())
        file.close()

    def finish(self, names: Sequence[str]) -> None:
        """Gives each file its name, in the order in which they were created."""
        for name in names:
            if not self._force and os.path.lexists(name):
                raise FileExistsError("%s: exists; force=True replaces it" % name)
        for hidden, name in zip(list(self._hidden), names):
            if self._force:
                os.replace(hidden, name)
            else:
                os.link(hidden, name)  # refuses one that has appeared in the meantime
                os.unlink(hidden)
            self._hidden.remove(hidden)
        for folder in {os.path.dirname(name) or "." for name in names}:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(fd)
            os.close(fd)

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        for hidden in self._hidden:
            try:
                os.unlink(hidden)
            except FileNotFoundError:
                pass


def _batches(reader: Reader, line_count: int) -> Iterator[List[Any]]:
    """Lists of `line_count` samples; the last may have fewer, and none is empty."""
    if line_count < 1:
        raise InvalidError("line_count=%r: is at least 1" % (line_count,))
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
    """Write the samples of a reader to files of `line_count` samples each; the last may have fewer.

    suffix  path of the files, with one %d in it for their numbers from 0
    dumper  called as dumper(list of samples, file)
    mode    of open(): "w" for dumpers that write text, such as json.dump

    Returns the paths. cluster_files_reader reads them, with a loader that fits."""
    _refuse_not_callable(dumper=dumper)
    try:
        distinct = suffix % 0 != suffix % 1
    except (TypeError, ValueError):
        distinct = False
    if not distinct:
        raise InvalidError("suffix=%r: has to have one %%d in it, for the number of a file" % (suffix,))
    names: List[str] = []
    with _Files(force) as files:
        for samples in _batches(reader, line_count):
            names.append(suffix % len(names))
            file = files.create(os.path.dirname(names[-1]), mode)
            with file:
                dumper(samples, file)
                files.close(file)
        files.finish(names)
    return names


def _matching(patterns: Union[str, Sequence[str]]) -> List[str]:
    """The files of one or several patterns, sorted. A pattern that nothing matches is a mistake."""
    found: List[str] = []
    for pattern in patterns.split(",") if isinstance(patterns, str) else patterns:
        more = [path for path in glob.glob(pattern) if os.path.isfile(path)]
        if not more:
            raise DataError("%s: no file matches" % pattern)
        found += more
    return sorted(set(found))


def _numbers(paths: Sequence[str]) -> Optional[List[int]]:
    """The numbers at the ends of the names, if all have one; sets that say how many files they have are
    checked to be whole."""
    matches = [_NUMBER.search(path) for path in paths]
    sets: Dict[Tuple[str, int, str], List[int]] = {}
    for path, match in zip(paths, matches):
        if match is not None and match.group(2) is not None:
            key = (path[: match.start()], int(match.group(2)), match.group(3) or "")
            sets.setdefault(key, []).append(int(match.group(1)))
    for (stem, of, extension), there in sets.items():
        missing = sorted(set(range(of)) - set(there))
        if missing:
            raise DataError("%s-%05d-of-%05d%s: is missing" % (stem, missing[0], of, extension))
        if max(there) > of:
            raise DataError("%s-%05d-of-%05d%s: is one file too many" % (stem, max(there), of, extension))
    if all(match is not None for match in matches):
        return [int(match.group(1)) for match in matches if match is not None]
    return None


def _share(patterns: Union[str, Sequence[str]], trainer_count: int, trainer_id: int) -> List[str]:
    """The trainer's files, by the rule of --data_split=files."""
    if not 0 <= trainer_id < trainer_count:
        raise InvalidError("trainer_id=%r: is from 0 to %r" % (trainer_id, trainer_count - 1))
    paths = _matching(patterns)
    numbers = _numbers(paths) or range(len(paths))
    mine = [path for path, number in zip(paths, numbers) if number % trainer_count == trainer_id]
    if not mine:
        raise DataError("none of the %d files is that of trainer %d of %d" % (len(paths), trainer_id, trainer_count))
    return mine


def cluster_files_reader(
    files_pattern: Union[str, Sequence[str]],
    trainer_count: int,
    trainer_id: int,
    loader: Callable[[IO[Any]], Iterable[Any]] = pickle.load,
    mode: str = "rb",
) -> Reader:
    """A reader of the samples in one trainer's files of those that split() wrote.

    files_pattern  a pattern of glob, several with commas between them, or a list of them
    loader         called as loader(file); returns the samples of a file
    mode           of open(): "r" for loaders that read text, such as json.load

    Files whose names end in numbers (train-00003.pickle, part-00003-of-00010) belong to the trainer
    number modulo trainer_count; others by their places among the sorted names. A trainer without a
    file is an error (DataError), when the reader is called."""
    _refuse_not_callable(loader=loader)

    def reader() -> Iterator[Any]:
        for path in _share(files_pattern, trainer_count, trainer_id):
            with open(path, mode) as file:
                samples = loader(file)
            yield from samples

    return reader


def convert(
    output_path: str,
    reader: Reader,
    line_count: int,
    name_prefix: str,
    dumper: Callable[[Any], bytes] = pickle.dumps,
    compressor: str = "snappy",
    shuffle_seed: Optional[int] = None,
    force: bool = False,
) -> List[str]:
    """Write the samples of a reader to RecordIO files of `line_count` records each; the last may have
    fewer.

    output_path   folder, which exists
    name_prefix   the files are called PREFIX-00000-of-00010 and so on
    dumper        called as dumper(sample); returns the bytes of a record
    compressor    "snappy" (needs libsnappy), "gzip" or "none"
    shuffle_seed  shuffle the samples of each file, in an order that this number decides; None: as they
                  come. The original shuffled them, by chance.

    Returns the paths. recordio_reader and `weft data` read them."""
    _refuse_not_callable(dumper=dumper)
    chance = random.Random(shuffle_seed)
    count = 0
    with _Files(force) as files:
        for samples in _batches(reader, line_count):
            if shuffle_seed is not None:
                chance.shuffle(samples)
            file: BinaryIO = files.create(output_path, "wb")
            with file:
                writer = _recordio.Writer(file, compressor)
                for sample in samples:
                    writer.write(dumper(sample))
                writer.finish()
                files.close(file)
            count += 1
        names = [os.path.join(output_path, "%s-%05d-of-%05d" % (name_prefix, i, count)) for i in range(count)]
        files.finish(names)
    return names


def recordio_reader(
    paths: Union[str, Sequence[str]],
    trainer_count: int = 1,
    trainer_id: int = 0,
    loader: Optional[Callable[[bytes], Any]] = None,
) -> Reader:
    """A reader of the records in RecordIO files, those of the original's tools too.

    paths       a pattern of glob, several with commas between them, or a list of them
    loader      called as loader(record); returns a sample. None: the samples are the bytes.
                pickle.loads reads what convert() writes unless it was given another dumper.

    Which files are a trainer's: cluster_files_reader. A chunk that is damaged or truncated is an error
    (DataError) with the file and the byte at which it begins."""
    if loader is not None:
        _refuse_not_callable(loader=loader)

    def reader() -> Iterator[Any]:
        for path in _share(paths, trainer_count, trainer_id):
            records = _recordio.read(path)
            yield from records if loader is None else map(loader, records)

    return reader
