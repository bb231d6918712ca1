# SPDX-License-Identifier: Apache-2.0
"""The pservers that the ranks of a process group start where none is named, one on each host, and how all
ranks find them. Each has an equal part of what is exchanged: of n hosts a rank reaches one by shared
memory, so that (n - 1) / n of its values leave its host, and as many come back for the others."""

from __future__ import annotations

import atexit
import ipaddress
import os
import shutil
import socket
import subprocess
import tempfile
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from weft import _abi, _settings
from weft.session import _at_exit as _close_sessions
from weft.errors import InvalidError, UnavailableError

_LOOK_SECONDS = 0.005  # between looks whether the pserver listens
_LEAVE_SECONDS = 30.0  # at exit: how long other ranks may take to leave the job
_FAILED = "!"  # before the text of why a rank has no pserver
_MASTERS = ("MASTER_ADDR", "PET_MASTER_ADDR")


def are_named() -> bool:
    """Whether WEFT_PSERVERS, PADDLE_INIT_PSERVERS or a launcher names pservers. One that only knows the
    host of rank 0 names none: MASTER_ADDR says where the ranks meet; so does Slurm's first host."""
    if _settings._from_environment("pservers") is not None:
        return True
    named = _settings.Named("SESSION")
    initial = named.get("pservers")
    named.fill_with_environment({})
    guesses = [initial] + [text % os.environ.get(name, "") for name in _MASTERS for text in ("%s", "[%s]")]
    return named.get("pservers") not in guesses and "SLURM_JOB_ID" not in os.environ


def find_program() -> str:
    """The program weft: WEFT_PROGRAM; beside the library, in its build or under its prefix; in PATH."""
    named = os.environ.get("WEFT_PROGRAM")
    if named:
        return named
    library = _abi.api().path
    if os.path.sep in library:
        folder = os.path.dirname(os.path.abspath(library))
        for place in ("../tools/weft", "../bin/weft", "../../bin/weft"):
            path = os.path.normpath(os.path.join(folder, place))
            if os.access(path, os.X_OK):
                return path
    found = shutil.which("weft")
    if found is None:
        raise UnavailableError(
            "the program weft, which is started as a pserver on each host, is neither beside %s nor in PATH; name it in "
            "WEFT_PROGRAM, or name pservers in WEFT_PSERVERS" % library
        )
    return found


class OwnPserver:
    """A child of this process. It serves one job and ends by itself: with that, when no trainer comes
    within connect_timeout, or when one is lost. It is in a session of its own, so that Ctrl-C reaches
    only the trainers, which end the job and say by what."""

    def __init__(self, size: int, listen: Optional[str], settings: Mapping[str, Any]) -> None:
        options = {
            "once": True,
            "port": 0,
            "ports_num": 1,
            "ports_num_for_sparse": 0,
            "num_gradient_servers": size,
            "listen": listen,
            "connect_timeout": settings.get("connect_timeout"),
            "log_level": None if _settings._from_environment("log_level") else "warn",
        }
        with tempfile.TemporaryDirectory(prefix="weft-") as folder:
            options["ready_file"] = os.path.join(folder, "ready")
            command = [find_program(), "pserver"] + [
                "--%s=%s" % (name, _settings._text(name, value).decode())
                for name, value in options.items()
                if value is not None
            ]
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
            )
            try:
                self.address = self._wait_ready(os.path.join(folder, "ready"))
            except BaseException:
                self.stop()
                raise
        _started.append(self)

    def _wait_ready(self, path: str) -> str:
        while True:
            try:
                with open(path, encoding="ascii") as file:
                    text = file.read().strip()
                if text:
                    return text
            except FileNotFoundError:
                pass
            status = self.process.poll()
            if status is not None:
                raise UnavailableError("the pserver ended with %d; its reason is on stderr" % status)
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        """Of a job that has not begun."""
        self.process.terminate()
        self.process.wait()


def meet(store: Any, rank: int, size: int, settings: Mapping[str, Any]) -> Tuple[str, Optional[OwnPserver]]:
    """Where the pservers are, in the order of their ranks, and the one that this rank has started: the
    first of each host does. `store` is the group's own part of the store through which the ranks have
    found each other."""
    store.set("host/%d" % rank, _host_id())
    if rank == 0:
        store.set("starters", " ".join(map(str, _first_of_hosts(store, size))))
    starters = [int(number) for number in store.get("starters").split()]
    pserver = None
    try:
        if rank in starters:
            pserver = _start(store, rank, size, len(starters) > 1, settings)
        if rank == 0:
            store.set("pservers", _all_of(store, starters))
        where = store.get("pservers").decode()
        if where.startswith(_FAILED):
            raise UnavailableError(where[len(_FAILED) :])
        return where, pserver
    except BaseException:
        if pserver is not None:
            pserver.stop()
        raise


def _first_of_hosts(store: Any, size: int) -> List[int]:
    """The lowest rank of each host."""
    first: Dict[bytes, int] = {}
    for number in range(size):
        first.setdefault(store.get("host/%d" % number), number)
    return list(first.values())


def _start(store: Any, rank: int, size: int, are_several: bool, settings: Mapping[str, Any]) -> OwnPserver:
    """This host's, and tell rank 0 where it is, or why there is none."""
    try:
        pserver = OwnPserver(size, _listen_address(store) if are_several else None, settings)
    except BaseException as error:
        store.set("pserver/%d" % rank, "%s%s: %s" % (_FAILED, type(error).__name__, error))
        if rank == 0:  # nobody else says so to the others
            store.set("pservers", _failure(rank, store.get("pserver/0").decode()))
        raise
    store.set("pserver/%d" % rank, pserver.address)
    return pserver


def _all_of(store: Any, starters: List[int]) -> str:
    """With commas between them; or the failure of the first that has none."""
    found = [store.get("pserver/%d" % number).decode() for number in starters]
    for number, where in zip(starters, found):
        if where.startswith(_FAILED):
            return _failure(number, where)
    return ",".join(found)


def _failure(rank: int, told: str) -> str:
    return "%srank %d could not start a pserver: %s" % (_FAILED, rank, told[len(_FAILED) :])


def _host_id() -> str:
    """The same text for processes that reach each other on loopback."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip() + " " + os.readlink("/proc/self/ns/net")


def _listen_address(store: Any) -> str:
    """An address of this host that others reach: that from which it reaches the store, or the host's name
    where the store has no address."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    host = getattr(store, "host", None) or socket.gethostname()
    family, kind, _, _, place = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(place)  # nothing is sent; the kernel chooses the address of this side
        address = str(probe.getsockname()[0])
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        raise InvalidError(
            "the ranks are on several hosts, and %s, where they meet, is %s here, which only this host reaches: give "
            "an address of rank 0 as MASTER_ADDR or in init_method, or name pservers in WEFT_PSERVERS" % (host, address)
        )
    return address


_started: List[OwnPserver] = []


def _at_exit() -> None:
    """The pserver goes before the rank that started it: in a container nothing outlives the first process."""
    _close_sessions()
    for pserver in _started:
        try:
            pserver.process.wait(_LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # it serves ranks that have not left yet


atexit.register(_at_exit)
