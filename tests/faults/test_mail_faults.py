"""Mail against a server that fails at every stage of the conversation."""

import ssl

import pytest
import trustme

from messaging_adapters.messenger import Messenger
from tests.adapters.loopback import nowhere
from tests.faults.mail import FAULTS, MailFault, MailServer, outcome_of, settings_of
from tests.faults.matrix import PATIENCE, untruths


@pytest.mark.parametrize(
    "fault", [pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.slow else []) for one in FAULTS]
)
def test_the_result_is_what_is_known_and_no_mail_is_doubled(fault: MailFault) -> None:
    cell, server = outcome_of(fault)
    status = cell.outcome.status.value
    assert (status, len(server.mails)) in fault.told, cell.outcome.message
    assert untruths(cell) == []
    if fault.error:
        assert type(cell.outcome.error).__name__ == fault.error


def test_a_mail_that_is_taken_for_some_goes_to_them_and_the_others_are_named() -> None:
    cell, server = outcome_of(next(one for one in FAULTS if one.name == "one recipient of two 550"))
    assert [one.recipient for one in cell.outcome.undelivered] == ["you@mail.test"]
    assert cell.outcome.receipts[0].recipient == "other@mail.test"
    assert cell.outcome.message.startswith("Partly sent to c: not to you@mail.test (550")


NO_FAULT = MailFault("none", "", "", ())


@pytest.mark.parametrize("case", ["refused", "no such name", "untrusted", "other host", "no encryption offered"])
def test_without_a_safe_connection_nothing_left(case: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("other.test" if case == "other host" else "127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    tls = context if case in ("untrusted", "other host") else None
    with MailServer(NO_FAULT, tls) as server:
        settings = settings_of(server.port, to="you@mail.test") | {"smtp_tls": case not in ("refused", "no such name")}
        if case == "refused":
            settings["smtp_port"] = int(nowhere().rpartition(":")[2])
        if case == "no such name":
            settings["smtp_host"] = "nothing-is-here.invalid"
        http = PATIENCE["http"] | ({"ca_file": str(tmp_path / "ca.pem")} if case == "other host" else {})  # type: ignore[operator]
        config = {"channels": {"c": settings}, **PATIENCE, "http": http, "max_attempts": 1}
        with Messenger.from_config(config) as messenger:
            outcome = messenger.send("Hello")
        assert (outcome.status.value, server.mails) == ("failed", [])
        assert not any(line.startswith((b"MAIL", b"AUTH")) for line in server.seen)
        assert "may have arrived" not in outcome.message
