"""What two ranks say to each other over TCP before one lets the other in: three messages of fixed size.

    rank 0 → guest   greeting   a number that nobody has used before
    guest → rank 0   request    who comes, a number of its own, and the proof that it knows the secret of the job
    rank 0 → guest   answer     the name of the UNIX socket to come to, and the proof that rank 0 knows the secret too

A proof is an HMAC over all that has been said before, with the secret as key: the secret itself is never sent, and what
was heard once is of no use a second time. The guest shows at the UNIX socket a token that both sides compute and
neither sends here.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import os
import secrets
import struct
from dataclasses import dataclass

VERSION = 1
_MAGIC = b"TDISTRV"
_GREETING = struct.Struct("!7sB32s")
# magic, version, nonce, unique id, rank, process id, user id, host, network namespace
_REQUEST = struct.Struct("!7sB32s16siqI16sQ")
_ANSWER = struct.Struct("!B32s")

PROOF_BYTES = TOKEN_BYTES = hashlib.sha256().digest_size
NONCE_BYTES = 32
GREETING_BYTES = _GREETING.size
REQUEST_BYTES = _REQUEST.size + PROOF_BYTES
ANSWER_BYTES = _ANSWER.size + PROOF_BYTES


class Verdict(enum.IntEnum):
    """What rank 0 answers."""

    WELCOME = 0
    WRONG_SECRET = 1
    OTHER_JOB = 2
    OTHER_HOST = 3
    OTHER_NAMESPACE = 4
    OTHER_USER = 5


class NotOfThisProtocolError(Exception):
    """The other side is no rank, or one of another release; the text says what it is."""


@dataclass(frozen=True)
class Origin:
    """Where a process runs, as far as it matters for sharing memory.

    Attributes:
        uid: its user.
        host: 16 bytes that are the same for all processes of a host since it has started.
        namespace: number of its network namespace.
    """

    uid: int
    host: bytes
    namespace: int

    @classmethod
    def own(cls) -> Origin:
        """Of this process."""
        try:
            with open("/proc/sys/kernel/random/boot_id", "rb") as file:
                host = file.read(100)
        except OSError:
            host = os.uname().nodename.encode()
        try:
            namespace = os.stat("/proc/self/ns/net").st_ino
        except OSError:
            namespace = 0
        return cls(os.geteuid(), hashlib.sha256(host).digest()[:16], namespace)


@dataclass(frozen=True)
class Request:
    """Who comes.

    Attributes:
        job: 16 bytes that stand for the unique id; zeros where the job has none.
        rank: number of the process.
        pid: its process id, as it sees itself.
        origin: where it runs.
    """

    job: bytes
    rank: int
    pid: int
    origin: Origin


def new_greeting() -> bytes:
    """What rank 0 says to a new connection."""
    return _GREETING.pack(_MAGIC, VERSION, secrets.token_bytes(NONCE_BYTES))


def check_greeting(greeting: bytes) -> None:
    """Raises NotOfThisProtocolError unless this is, or may become, the greeting of a rank 0 of this release."""
    head = _MAGIC + bytes([VERSION])
    if greeting[: len(head)] == head[: len(greeting)]:
        return
    if greeting[: len(_MAGIC)] == _MAGIC:
        raise NotOfThisProtocolError(f"speaks version {greeting[len(_MAGIC)]} of the rendezvous, this rank {VERSION}")
    raise NotOfThisProtocolError("is another program, not rank 0 of a job")


def make_request(request: Request, greeting: bytes, secret: bytes) -> bytes:
    """What the guest says after `greeting`."""
    said = _REQUEST.pack(
        _MAGIC,
        VERSION,
        secrets.token_bytes(NONCE_BYTES),
        request.job,
        request.rank,
        request.pid,
        request.origin.uid,
        request.origin.host,
        request.origin.namespace,
    )
    return said + _prove(secret, b"guest", greeting, said)


def begins_a_request(said: bytes) -> bool:
    """Whether this is, or may become, the request of a rank of this release."""
    head = _MAGIC + bytes([VERSION])
    return said[: len(head)] == head[: len(said)]


def read_request(said: bytes) -> Request:
    """The request in these `REQUEST_BYTES`; nothing is proven yet."""
    _, _, _, job, rank, pid, uid, host, namespace = _REQUEST.unpack(said[: _REQUEST.size])
    return Request(job, rank, pid, Origin(uid, host, namespace))


def is_proven(said: bytes, greeting: bytes, secret: bytes) -> bool:
    """Whether who made this request knows the secret."""
    words, proof = said[: _REQUEST.size], said[_REQUEST.size :]
    return hmac.compare_digest(proof, _prove(secret, b"guest", greeting, words))


def make_answer(verdict: Verdict, name: bytes, greeting: bytes, request: bytes, secret: bytes) -> bytes:
    """What rank 0 says to `request`; `name` are the 32 bytes that name its UNIX socket."""
    said = _ANSWER.pack(verdict, name)
    return said + _prove(secret, b"rank 0", greeting, request, said)


def read_answer(said: bytes, greeting: bytes, request: bytes, secret: bytes) -> tuple[Verdict, bytes]:
    """Verdict and name in these `ANSWER_BYTES`.

    Raises:
        NotOfThisProtocolError: the answer is not that of a rank 0 that knows the secret. That it does not take this
            rank's secret is believed without a proof, for there can be none.
    """
    words, proof = said[: _ANSWER.size], said[_ANSWER.size :]
    number, name = _ANSWER.unpack(words)
    if number == Verdict.WRONG_SECRET:
        return Verdict.WRONG_SECRET, name
    if number not in set(Verdict) or not hmac.compare_digest(
        proof, _prove(secret, b"rank 0", greeting, request, words)
    ):
        raise NotOfThisProtocolError("does not prove that it knows the secret of this job")
    return Verdict(number), name


def token(greeting: bytes, request: bytes, secret: bytes) -> bytes:
    """What the guest shows at the UNIX socket."""
    return _prove(secret, b"descriptors", greeting, request)


def equal(one: bytes, other: bytes) -> bool:
    """Whether two tokens are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(one, other)


def _prove(secret: bytes, role: bytes, *said: bytes) -> bytes:
    # All parts but the role have a fixed size, and no role is the beginning of another.
    return hmac.digest(secret, role + b"\0" + b"".join(said), "sha256")
