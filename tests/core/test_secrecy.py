"""Secrets are named in descriptions, revealed for the wire only, and taken out of foreign text in every form."""

import base64
import pickle
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messaging_core.secrecy import MASK, Secret, Secrets, joined, redact, shown

TOKEN = "111111:FAKE-AbC_dEf-123"
SECRETS = Secrets(
    {"tg.bot_token": TOKEN, "hook.url": "https://hook.test/in/FAKE-hook-part-0001?sig=FAKEsig%3D", "mail.password": "e"}
)
NAME = Secret("tg.bot_token")


def test_texts_are_joined_flat() -> None:
    assert joined("https://h/bot", NAME, "/send", "Message") == ("https://h/bot", NAME, "/sendMessage")
    assert joined("plain", " text") == "plain text"
    assert joined() == ""


def test_people_see_the_name_and_the_wire_gets_the_value() -> None:
    url = joined("https://h/bot", NAME, "/send")
    assert shown(url) == "https://h/bot{tg.bot_token}/send"
    assert SECRETS.reveal(url) == f"https://h/bot{TOKEN}/send"


def test_neither_repr_nor_pickle_holds_a_value() -> None:
    assert repr(SECRETS) == "Secrets(hook.url, mail.password, tg.bot_token)"
    assert b"FAKE" not in pickle.dumps(SECRETS)


@pytest.mark.parametrize(
    "foreign",
    [
        f"GET /bot{TOKEN}/sendMessage failed",
        f"url: /bot{quote(TOKEN, safe='')}/sendMessage",
        f"form={quote_plus(TOKEN)}",
        f"authorization: {base64.b64encode(TOKEN.encode()).decode()}",
        f"basic {base64.b64encode(b'user:' + TOKEN.encode()).decode()}",
        f"basic {base64.urlsafe_b64encode(b'u:' + TOKEN.encode() + b'!').decode()}",
        TOKEN.upper(),
        "HTTPConnectionPool(host='hook.test'): Max retries exceeded with url: /in/FAKE-hook-part-0001?sig=FAKEsig%3D",
        "POST /in/FAKE-hook-part-0001 404",
    ],
)
def test_a_value_is_taken_out_of_foreign_text_in_each_form(foreign: str) -> None:
    clean = redact(SECRETS, foreign)
    assert MASK in clean
    for form in ("AbC_dEf", "FAKE-hook", base64.b64encode(TOKEN.encode()).decode()[4:16]):
        assert form.lower() not in clean.lower()


def test_a_value_too_short_to_be_told_from_words_is_left_alone_and_named() -> None:
    assert redact(SECRETS, "the server refused") == "the server refused"
    assert SECRETS.short == ("mail.password",)


@given(st.text(min_size=6, max_size=40), st.text(max_size=10), st.text(max_size=10))
def test_no_long_value_survives_in_any_base64_alignment(value: str, before: str, behind: str) -> None:
    secrets = Secrets({"a.b": value})
    assert value not in redact(secrets, before + value + behind).replace(MASK, "\0") or value in MASK
    encoded = base64.b64encode((before + value + behind).encode()).decode()
    assert redact(secrets, encoded) != encoded
