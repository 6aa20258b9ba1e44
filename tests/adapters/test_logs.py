"""Other libraries' records without secrets, and nothing else touched."""

import gc
import logging

import pytest

from messaging_adapters.logs import FOREIGN, keep_clean
from messaging_core.secrecy import Secrets

TOKEN = "111111:FAKE-token"


@pytest.fixture
def secrets() -> Secrets:
    return Secrets({"ops.bot_token": TOKEN})


def test_a_url_in_another_librarys_record_shows_no_token(secrets: Secrets, caplog: pytest.LogCaptureFixture) -> None:
    keep_clean(secrets)
    caplog.set_level(logging.DEBUG)
    pool = logging.getLogger("urllib3.connectionpool")
    pool.debug(
        '%s://%s:%s "%s %s %s" %s', "https", "api.test", 443, "POST", f"/bot{TOKEN}/sendMessage", "HTTP/1.1", 200
    )
    assert caplog.messages == ['https://api.test:443 "POST /bot***/sendMessage HTTP/1.1" 200']


def test_a_traceback_in_a_record_shows_no_token(secrets: Secrets, caplog: pytest.LogCaptureFixture) -> None:
    keep_clean(secrets)
    try:
        try:
            raise ValueError(TOKEN)
        except ValueError as cause:
            raise OSError(f"cannot reach /bot{TOKEN}/") from cause
    except OSError:
        logging.getLogger("websockets.client").exception("handshake failed")
    assert "FAKE" not in caplog.text
    assert "OSError: cannot reach /bot***/" in caplog.text


def test_several_messengers_secrets_are_all_taken_out_of_one_traceback(caplog: pytest.LogCaptureFixture) -> None:
    one, other = Secrets({"a.token": "FAKE-first-token"}), Secrets({"b.token": "FAKE-second-token"})
    stops = [keep_clean(one), keep_clean(other)]
    try:
        raise OSError("FAKE-first-token and FAKE-second-token")
    except OSError:
        logging.getLogger("websockets.client").exception("handshake failed")
    for stop in stops:
        stop()
    assert "FAKE" not in caplog.text


def test_a_record_whose_arguments_do_not_fit_shows_none_of_them(
    secrets: Secrets, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_clean(secrets)
    handler = logging.StreamHandler()
    logger = logging.getLogger("requests")
    logger.addHandler(handler)
    try:
        logger.warning("%d", TOKEN)
    finally:
        logger.removeHandler(handler)
    assert "FAKE" not in "".join(capsys.readouterr())


def test_records_without_a_secret_stay_as_they_are(secrets: Secrets, caplog: pytest.LogCaptureFixture) -> None:
    keep_clean(secrets)
    logging.getLogger("urllib3").warning("retrying %s", "soon")
    assert (caplog.records[0].msg, caplog.records[0].args) == ("retrying %s", ("soon",))


def test_it_ends_when_it_is_stopped_and_with_its_secrets(secrets: Secrets) -> None:
    gc.collect()  # the filters of what other tests have left behind are gone
    filters = [len(logging.getLogger(name).filters) for name in FOREIGN]
    keep_clean(secrets)()
    own = Secrets({"a.token": TOKEN})
    keep_clean(own)
    del own
    gc.collect()
    assert [len(logging.getLogger(name).filters) for name in FOREIGN] == filters


def test_no_level_and_no_handler_is_set(secrets: Secrets) -> None:
    before = [(logging.getLogger(name).level, list(logging.getLogger(name).handlers)) for name in ("", *FOREIGN)]
    keep_clean(secrets)
    assert before == [
        (logging.getLogger(name).level, list(logging.getLogger(name).handlers)) for name in ("", *FOREIGN)
    ]
