# SPDX-License-Identifier: Apache-2.0
"""The pserver that rank 0 of a process group starts where none is named, and how all ranks find it."""

from __future__ import annotations

import atexit
import ipaddress
import os
import shutil
import socket
import subprocess
import tempfile
import time
from typing import Any, List, Mapping, Optional, Tuple

from weft import _abi, _settings
from weft.session import _at_exit as _close_sessions
from weft.errors import InvalidError, UnavailableError

_LOOK_SECONDS = 0.005  # between looks whether the pserver listens
_LEAVE_SECONDS = 30.0  # at exit: how long other ranks may take to leave the job
_FAILED = "!"  # before the text of why rank 0 has no pserver
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
            "the program weft, of which rank 0 starts a pserver, is neither beside %s nor in PATH; name it in "
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
                raise UnavailableError("the pserver of rank 0 ended with %d; its reason is on stderr" % status)
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        """Of a job that has not begun."""
        self.process.terminate()
        self.process.wait()


def meet(store: Any, rank: int, size: int, settings: Mapping[str, Any]) -> Tuple[str, Optional[OwnPserver]]:
    """Where the pserver is, and on rank 0 the one that it has started. `store` is the group's own part
    of the store through which the ranks have found each other."""
    store.set("host/%d" % rank, _host_id())
    if rank != 0:
        where = store.get("pservers").decode()
        if where.startswith(_FAILED):
            raise UnavailableError("rank 0 could not start a pserver: " + where[len(_FAILED) :])
        return where, None
    try:
        hosts = {store.get("host/%d" % number) for number in range(size)}
        pserver = OwnPserver(size, _listen_address(store) if len(hosts) > 1 else None, settings)
    except BaseException as error:
        store.set("pservers", "%s%s: %s" % (_FAILED, type(error).__name__, error))
        raise
    store.set("pservers", pserver.address)
    return pserver.address, pserver


def _host_id() -> str:
    """The same text for processes that reach each other on loopback."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip() + " " + os.readlink("/proc/self/ns/net")


def _listen_address(store: Any) -> str:
    """An address of this host that others reach: where the store is, or the host's name."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    host = getattr(store, "host", None) or socket.gethostname()
    address = str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        raise InvalidError(
            "the ranks are on several hosts, and %s, where they meet, is %s here, which only this host reaches: give "
            "an address of rank 0 as MASTER_ADDR or in init_method, or name pservers in WEFT_PSERVERS" % (host, address)
        )
    return address


_started: List[OwnPserver] = []


def _at_exit() -> None:
    """The pserver goes before rank 0 does: in a container nothing outlives the first process."""
    _close_sessions()
    for pserver in _started:
        try:
            pserver.process.wait(_LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # it serves ranks that have not left yet


atexit.register(_at_exit)
