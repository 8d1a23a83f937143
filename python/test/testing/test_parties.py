"""What is written beside locks, and read by others who must not trust it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from triton_dist.testing.leases.parties import Party, from_bytes, to_bytes

PARTIES = st.builds(
    Party,
    pid=st.integers(1, 1 << 22),
    host=st.text(max_size=300),
    user=st.text(max_size=300),
    worker=st.text(max_size=8),
    test=st.text(max_size=3000),
    since=st.floats(0, 1e9),
)


@given(PARTIES)
def test_what_was_written_is_read_and_fits_its_place(party: Party) -> None:
    raw = to_bytes(party, 2048, state="held")
    assert len(raw) == 2048
    read = from_bytes(raw)
    assert read is not None
    assert (read[0].pid, read[0].since, read[1]) == (party.pid, party.since, {"state": "held"})
    if max(map(len, (party.host, party.user, party.worker, party.test))) <= 10:
        assert read[0] == party


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["pid", "host", "since", "test"]), inner),
)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_what_nobody_wrote_is_nothing(raw: bytes) -> None:
    assert from_bytes(raw) is None


@given(PARTIES, st.integers(1, 2047))
def test_what_is_written_in_part_is_nothing(party: Party, length: int) -> None:
    raw = to_bytes(party, 2048)
    if raw[length:].strip(b"\0"):
        assert from_bytes(raw[:length]) is None
