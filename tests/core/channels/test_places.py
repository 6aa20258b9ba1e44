"""Bytes go only to places that are the platform's own, or at the settings' own host, however another one is spelled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from returns.pipeline import is_successful

from messaging_core.channels.places import upload_place
from messaging_core.errors import Rejected

BASE, DOMAINS = "https://slack.com/api", ("slack.com", "slack-gov.com")


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://files.slack.com/upload/v1/CwABAAAAW?x=1&y=%2F", BASE),
        ("https://slack.com/upload", BASE),
        ("https://slack-gov.com/upload", BASE),
        ("HTTPS://Files.Slack.COM:443/upload", BASE),
        ("https://files.slack-gov.com/upload", "https://slack-gov.com/api"),
        ("https://files.slack.com/upload", "http://127.0.0.1:8080/api"),
        ("http://127.0.0.1:8080/upload", "http://127.0.0.1:8080/api"),
        ("http://localhost:8080/upload", "http://127.0.0.1:8080/api"),
        ("http://[::1]:8080/upload", "http://localhost:8080"),
        ("https://proxy.company.example/upload", "https://proxy.company.example:443/slack/api"),
    ],
)
def test_the_platforms_own_and_the_configured_host_are_taken_as_they_are(url: str, base: str) -> None:
    assert upload_place(url, base, DOMAINS).unwrap() == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "files.slack.com/upload",
        "//files.slack.com/upload",
        "file:///etc/passwd",
        "ftp://files.slack.com/upload",
        "http://files.slack.com/upload",
        "https://files.slack.com:8443/upload",
        "https://files.slack.com.evil.test/upload",
        "https://evilslack.com/upload",
        "https://evil-slack.com/upload",
        "https://slack.com.test/upload",
        "https://files.slack.com./upload",
        "https://.slack.com/upload",
        "https://files.slack.com@evil.test/upload",
        "https://user:pass@files.slack.com/upload",
        "https://evil.test\\@files.slack.com/upload",
        "https://evil.test\\.slack.com/upload",
        "https://evil.test#.slack.com/upload",
        "https://evil.test%23.slack.com/upload",
        "https://evil.test%2f.slack.com/upload",
        "https://files%2eslack.com/upload",
        "https://files.ѕlack.com/upload",
        "https://files.slack\u3002com/upload",
        "https://files.slack.com/\u202eupload",
        "https://files.slack.com /upload",
        "https://files.slack.com/up load",
        "https://files.slack.com/upload\r\nHost: evil.test",
        "http://files.slack.com:443/upload",
        " https://files.slack.com/upload",
        "https://files.slack.com/upload\n",
        "https://169.254.169.254/latest/meta-data",
        "https://127.0.0.1/upload",
        "https://2130706433/upload",
        "https://0x7f.1/upload",
        "https://[::1]/upload",
        "https://[::ffff:127.0.0.1]/upload",
        "https://localhost/upload",
        "https://com/upload",
    ],
)
def test_look_alikes_users_escapes_and_other_addresses_are_refused(url: str) -> None:
    assert isinstance(upload_place(url, BASE, DOMAINS).failure(), Rejected)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8081/upload",
        "https://127.0.0.1:8080/upload",
        "http://127.0.0.2:8080/upload",
        "http://127.1:8080/upload",
        "http://2130706433:8080/upload",
        "http://0x7f000001:8080/upload",
        "http://0.0.0.0:8080/upload",
        "http://files.slack.com:8080/upload",
    ],
)
def test_a_configured_host_means_its_scheme_and_port_too(url: str) -> None:
    assert not is_successful(upload_place(url, "http://127.0.0.1:8080/api", DOMAINS))


def test_a_refusal_names_the_host_and_not_the_rest_of_the_url() -> None:
    said = str(upload_place("https://evil.test/upload?key=hidden", BASE, DOMAINS).failure())
    assert "evil.test" in said
    assert "hidden" not in said


@given(st.text(max_size=40), st.sampled_from(["https://", "http://", "https://files.slack.com", "https://slack.com"]))
def test_whatever_is_taken_is_at_a_host_of_the_platform(tail: str, head: str) -> None:
    """Judged by another parser than the one in use: the standard library's."""
    from urllib.parse import urlsplit

    for url in upload_place(head + tail, BASE, DOMAINS).map(lambda url: [url]).value_or([]):
        split = urlsplit(url)
        assert split.scheme == "https"
        assert split.username is None
        assert split.port in (None, 443)
        assert split.hostname is not None
        assert split.hostname == "slack.com" or split.hostname.endswith((".slack.com", "slack-gov.com"))
