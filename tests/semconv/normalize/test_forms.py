"""Names of forms, and what fits them."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.letters import LETTERS

from playhead_core.normalize.forms import epoch_form, form_of, hex_form

FITS = [
    ("uuid:4", "0d6f0a1e-5b1c-4c63-9a53-0f3f6b7f3c11"),
    ("UUID:4", "0D6F0A1E-5B1C-4C63-9A53-0F3F6B7F3C11"),
    ("uuid:-", "0d6f0a1e-5b1c-ac63-0a53-0f3f6b7f3c11"),
    ("hex:32:4", "0d6f0a1e5b1c4c639a530f3f6b7f3c11"),
    ("hex:8", "1f3a9b2c"),
    ("HEX:8-4", "1F3A9B2C-77AA"),
    ("base64:22", "bm90LXNlY3JldC1hdC1hbA"),
    ("base64:22:2", "bm90LXNlY3JldC1hdC1hbA=="),
    ("base64:11", "ab-d_fghijk"),
    ("decimal:39", "123456789012345678901234567890123456789"),
    ("decimal:10", "1234567"),
    ("duration:s", "2e-05"),
    ("fraction", "0.13436424411240122"),
    ("fraction", "1.3436424411240122e-05"),
    ("float", "3.8474337369372327"),
    ("text:8", "k3_x9-zt"),
    ("ulid", "01JD8Z7N6Q3V0B5H4M2K9T8R7W"),
    ("objectid", "6743f2a5e4b0c1d2e3f4a5b6"),
    ("time:dddd-dd-dd", "2026-11-22"),
    ("epoch:s", "1795341600"),
    ("epoch:ms", "1795341600000"),
    ("epoch:us", "1795341600000000"),
    ("epoch:ns", "1795341600000000000"),
    ("epoch:s.f", "1795341600.123"),
    ("epoch:ms.f", "1795341600123.5"),
    ("count:s", "991.123456789"),
    ("count:ns", "9123456789000"),
    ("duration:s", "0.831234"),
    ("duration:ms", "9.99e-07"),
]


@pytest.mark.parametrize(("name", "text"), FITS)
def test_what_fits_a_form(name: str, text: str):
    form = form_of(name)
    assert form is not None
    assert form.fits(text)
    assert form.end(f"({text})", 1) == len(text) + 1
    for other in ("", "hello", text[:-1] + "!", text + "!", "9" * 70):
        assert not form.fits(other)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uuid:4", "0d6f0a1e-5b1c-1c63-9a53-0f3f6b7f3c11"),
        ("uuid:4", "0d6f0a1e-5b1c-4c63-ca53-0f3f6b7f3c11"),
        ("uuid:4", "0D6F0A1E-5B1C-4C63-9A53-0F3F6B7F3C11"),
        ("hex:32:4", "0d6f0a1e5b1c1c639a530f3f6b7f3c11"),
        ("hex:8", "1F3A9B2C"),
        ("hex:8", "1f3a9b2c0"),
        ("base64:11", "ab-d+fghijk"),
        ("base64:22:2", "bm90LXNlY3JldC1hdC1hbA="),
        ("decimal:39", "12345678901234567890123456789012"),
        ("fraction", "1.13436424411240122"),
        ("fraction", "0.5"),
        ("float", "3.5"),
        ("ulid", "81JD8Z7N6Q3V0B5H4M2K9T8R7W"),
        ("time:dddd-dd-dd", "2026-13-22"),
        ("time:dddd-dd-dd", "2026/11/22"),
        ("epoch:s", "179534160"),
        ("count:s", "991.1"),
        ("duration:s", "831234"),
    ],
)
def test_what_does_not(name: str, text: str):
    form = form_of(name)
    assert form is not None
    assert not form.fits(text)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "uuid",
            "uuid:9",
            "uuid:44",
            "uuid:4:4",
            "hex",
            "hex:7",
            "hex:",
            "hex:-",
            "hex:4-",
            "hex:x",
        ),
        *("hex:99999", "hex:8:4", "hex:33:4", "base64:4", "base64:22:3", "decimal:5", "decimal:65"),
        *("fraction:8", "text:7", "text:8:1", "time:", "time:\n\n\n\n", "time:" + "d" * 65, "epoch:m"),
        *(
            "duration:h",
            "duration",
            "ulid:26",
            ".*",
            "hex:(a+)+b",
            "text:9999",
            "HEX:8\n",
            "hex:1-1-1-1-1-1-1-1-1",
        ),
    ],
)
def test_a_name_of_no_form(name: str):
    assert form_of(name) is None


@given(
    st.one_of(
        st.text(LETTERS, max_size=30), st.from_regex(r"\A[a-zA-Z0-9]{2,9}(:[0-9a-z.-]{0,6}){0,2}\Z")
    )
)
def test_any_name(name: str):
    form = form_of(name)
    assert form is None or not form.fits("not this one")


def test_names_are_found():
    assert hex_form("1f3a9B2c") is None
    assert hex_form("0d6f0a1e5b1c4c639a530f3f6b7f3c11") == "hex:32"
    assert hex_form("0d6f0a1e5b1c4c639a530f3f6b7f3c11", "4") == "hex:32:4"
    assert [epoch_form(text) for text in ("17", "1795341600", "1795341600.5", "1795341600000000.5")] == [
        *(None, "epoch:s", "epoch:s.f", None)
    ]


def test_times_that_ids_hold():
    first = uuid.uuid1()
    form = form_of("uuid:1")
    assert form is not None
    stretch = form.stretch(str(first))
    epoch = 0x01B21DD213814000
    assert stretch == ((first.time - epoch) * 100, (first.time - epoch) * 100 + 100)
    for name, text, expected_ns in (
        ("uuid:7", "01935341-6000-7abc-8def-0123456789ab", 0x019353416000 * 10**6),
        ("uuid:6", "1ef2c1d2-13f0-6abc-8def-0123456789ab", (0x1EF2C1D213F0ABC - epoch) * 100),
        ("ulid", "01JD8Z7N6Q3V0B5H4M2K9T8R7W", int("01id8v7l6n", 32) * 10**6),
        ("objectid", "6743f2a5e4b0c1d2e3f4a5b6", 0x6743F2A5 * 10**9),
    ):
        form = form_of(name)
        assert form is not None
        stretch = form.stretch(text)
        assert stretch is not None
        assert stretch[0] == expected_ns
    form = form_of("uuid:4")
    assert form is not None
    assert form.stretch("0d6f0a1e-5b1c-4c63-9a53-0f3f6b7f3c11") is None
