"""The page at ``/`` in a real browser: what arrives is shown, whatever it is, and nothing of it runs."""

import http.server
import json
import os
import subprocess
import threading
from contextlib import contextmanager

import pytest
from chromium import PROGRAM, chromium
from gateways import threaded

from messaging_adapters.websocket import WebSocketEdge
from messaging_core.config.settings import Gateway, Http
from messaging_core.flow import drive
from messaging_core.gateway.tool import describe, parse, report
from messaging_core.markup.controls import by_number
from messaging_core.message import Ids
from messaging_core.secrecy import Secrets

pytestmark = [pytest.mark.server, pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")]

STATE = "document.getElementById('state').textContent"
TEXTS = "[...document.querySelectorAll('#messages .text')].map(item => item.textContent)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


def opened(tab, gateway, path="/"):
    page = tab()
    page.command("Runtime.enable")
    page.open(gateway.url + path)
    page.until(f"{STATE} !== 'connecting'")
    return page


def state(page, wanted):
    return page.until(f"{STATE}.includes({json.dumps(wanted)})") or page.run(STATE)


def test_what_arrives_is_shown_newest_first_and_acknowledged(browser, start):
    gateway = start()
    page = opened(browser, gateway)
    assert state(page, "connected") is True
    gateway.send("/ws", "first", id="1")
    gateway.broadcast("second\n  line", id="2")
    assert page.until(f"{TEXTS}.length === 2") and page.run(TEXTS) == ["second\n  line", "first"]
    assert gateway.until(lambda status: status["counts"]["acknowledged"] == 2)["counts"]["acknowledged"] == 2
    head = page.run("document.querySelector('#messages .head').textContent")
    assert head.split(" · ")[1:] == ["api to everyone"]


HOSTILE = [
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 2'>",
    "</p></li></ol><script>window.pwned = 3</script>",
    "<svg onload=window.pwned=4><iframe srcdoc='<script>parent.pwned=5</script>'>",
    "javascript:window.pwned=6",
    "{{constructor.constructor('window.pwned=7')()}}",
    "<style>body{display:none}</style><base href=//evil.example><meta http-equiv=refresh content='0;//evil.example'>",
    "\u202etxet desrever\u202c \u2066\u2067",
    "\x1b[31mred\x1b[0m \x00 \x07",
    "\u0301" * 5000,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 500,
    "w" * 90_000,
]


def test_hostile_content_is_text_and_nothing_of_it_runs(browser, start):
    gateway = start()
    page = opened(browser, gateway)
    page.run(
        "window.violations = []; document.addEventListener('securitypolicyviolation', e => violations.push(e.violatedDirective))"
    )
    before = page.run("document.querySelectorAll('*').length")
    for number, content in enumerate(HOSTILE):
        for extra in ({}, {"type": "x", "data": {"__proto__": {"pwned": 8}, "constructor": 1}}):
            assert gateway.send("/ws", content, id=f"<b>{number}-{len(extra)}", **extra)[0] == 200
    assert page.until(f"{TEXTS}.length === {2 * len(HOSTILE)}")
    texts = page.run(f"{TEXTS}.filter((_, index) => index % 2).reverse()")
    assert texts == [by_number(text) for text in HOSTILE]
    assert page.run("window.pwned") is None and page.run("({}).pwned") is None
    inside = "[...new Set([...document.querySelectorAll('#messages *')].map(item => item.localName))].sort()"
    assert page.run(inside) == ["details", "div", "li", "p", "pre", "summary"]
    assert page.run("document.querySelectorAll('*').length") == before + (3 + 6) * len(HOSTILE)
    assert page.run("window.violations") == []
    assert page.run("getComputedStyle(document.body).display") == "block"
    assert page.run("location.href") == gateway.url + "/"
    assert page.run(
        "[...document.querySelectorAll('.text')].every(item => getComputedStyle(item).unicodeBidi === 'isolate')"
    )


@pytest.mark.parametrize("token", ["", "s3cret"])
def test_the_command_on_an_empty_page_brings_it_a_message(browser, start, token):
    gateway = start(token=token)
    page = opened(browser, gateway)
    if token:
        page.run(f"field.value = {json.dumps(token)}; login.requestSubmit()")
    assert state(page, "connected") is True
    command = page.run("document.getElementById('try').textContent")
    environment = os.environ | {"TOKEN": token, "no_proxy": "127.0.0.1"}
    subprocess.run(["sh", "-c", command], env=environment, check=True, capture_output=True, timeout=20)
    assert page.until(f"{TEXTS}[0] === 'hi'")


def test_what_is_not_shown_whole_says_so(browser, start):
    gateway = start()
    page = opened(browser, gateway)
    assert state(page, "connected") is True
    assert page.run("getComputedStyle(document.getElementById('none')).display") == "block"
    gateway.send("/ws", "w" * 100_001, type="event.deploy", severity="high")
    assert page.until(f"{TEXTS}.length === 1") and page.run(f"{TEXTS}[0].length") == 100_000
    head = page.run("document.querySelector('#messages .head').textContent")
    assert head.split(" · ")[1:] == ["api to /ws", "event.deploy", "the first 100000 of 100001 characters"]
    assert page.run("getComputedStyle(document.getElementById('none')).display") == "none"
    more = page.run("document.querySelector('#messages details').textContent")
    assert more == 'also: severity{\n  "severity": "high"\n}'


def test_a_name_that_no_client_can_have_is_told_and_not_tried_again(browser, start):
    gateway = start()
    page = opened(browser, gateway, "/?name=my%20desk")
    assert state(page, "no page can have this name") is True
    assert gateway.status()["counts"]["refused"] == 0


SHADES = """
(element => {
  const part = rgb => rgb.match(/[0-9.]+/g).slice(0, 3).map(value => value / 255)
    .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0)
  const both = [getComputedStyle(element).color, getComputedStyle(document.querySelector('header')).backgroundColor]
  const [light, dark] = both.map(part).sort((one, other) => other - one)
  return (light + 0.05) / (dark + 0.05)
})(document.querySelector('%s'))
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_by_day_and_by_night(browser, start, scheme):
    """Contrast as WCAG 2.2 counts it (1.4.3): at least 4.5 to 1."""
    gateway = start()
    page = opened(browser, gateway)
    page.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    gateway.broadcast("hi", more=1)
    assert page.until(f"{TEXTS}.length === 1")
    for what in ("h1", "#state", ".head", ".text", "summary"):
        assert page.run(SHADES % what) >= 4.5, what


def test_even_a_script_that_got_in_would_not_run(browser, start):
    page = opened(browser, start())
    assert page.run("try { document.body.innerHTML = '<b>x</b>'; 'set' } catch (error) { error.name }") == "TypeError"
    page.run(
        "{ const s = document.createElement('script'); try { s.text = 'window.pwned = 1' } catch {} document.body.append(s) }"
    )
    assert page.run("window.pwned") is None
    assert page.run("fetch('http://127.0.0.1:1/').then(() => 'sent', error => error.name)") == "TypeError"


def test_a_flood_does_not_grow_the_page(browser, start):
    gateway = start()
    page = opened(browser, gateway)
    for number in range(600):
        gateway.broadcast(str(number))
    assert page.until(f"{TEXTS}[0] === '599'")
    assert page.run(f"{TEXTS}.length") == 500
    assert state(page, "connected") is True


def test_the_token_is_asked_for_and_kept_for_this_tab_alone(browser, start):
    gateway = start(token="s3cret-t0ken+/=")
    page = opened(browser, gateway)
    assert state(page, "asks for a token") is True
    enter = "document.getElementById('token').value = {}; document.getElementById('login').requestSubmit()"
    page.run(enter.format("'wrong'"))
    assert state(page, "not right") is True
    page.run(enter.format("'s3cret-t0ken+/='"))
    assert state(page, "connected") is True
    bearer = {"Authorization": "Bearer " + "s3cret-t0ken+/="}
    status, _, outcome = gateway.request("POST", "/api/broadcast", {"content": "hi"}, bearer)
    assert (status, outcome["clients"]) == (200, 1)
    assert page.until(f"{TEXTS}[0] === 'hi'")
    assert page.run("sessionStorage.length === 1 && localStorage.length === 0 && document.cookie === ''")
    page.open(gateway.url + "/")
    assert state(page, "connected") is True
    assert state(opened(browser, gateway), "asks for a token") is True


def test_it_comes_back_when_the_gateway_does(browser, process):
    first = process("127.0.0.1", 0)
    gateway = first.ready()
    page = opened(browser, gateway)
    assert state(page, "connected") is True
    gateway.broadcast("before")
    first.signal()
    assert first.ended()[0] == 0
    assert state(page, "trying again") is True
    process("127.0.0.1", gateway.port).ready()
    assert state(page, "connected") is True
    gateway.until(lambda status: status["connections"]["total"] == 1)
    gateway.broadcast("after")
    assert page.until(f"{TEXTS}.length === 2") and page.run(TEXTS) == ["after", "before"]


def test_a_page_may_have_a_name_and_gives_it_up_to_the_next(browser, start):
    gateway = start()
    one = opened(browser, gateway, "/?name=desk")
    assert state(one, "connected") is True
    assert gateway.send("/ws/desk", "for the desk")[0] == 200
    assert one.until(f"{TEXTS}[0] === 'for the desk'")
    other = opened(browser, gateway, "/?name=desk")
    assert state(other, "connected") is True
    assert state(one, "took this name") is True


@contextmanager
def elsewhere():
    """Another origin on this machine, as every page that a browser shows is."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>elsewhere</title>")

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


ATTACKS = {
    "fetch": "fetch('{url}/api/broadcast', {{method: 'POST', headers: {{'Content-Type': 'application/json'}}, body: '{body}'}})",
    "simple": "fetch('{url}/api/broadcast', {{method: 'POST', mode: 'no-cors', headers: {{'Content-Type': 'text/plain'}}, body: '{body}'}})",
    "status": "fetch('{url}/api/status').then(answer => answer.text())",
    "socket": "new Promise((done, fail) => {{ const s = new WebSocket('{socket}/ws'); s.onopen = done; s.onerror = fail }})",
}


def test_a_page_of_another_origin_reaches_nothing(browser):
    with threaded() as gateway, elsewhere() as url, gateway.client() as client:
        gateway.until(lambda status: status["connections"]["total"] == 1)
        page = browser()
        page.open(url)
        page.until("document.title === 'elsewhere'")
        for name, attack in ATTACKS.items():
            script = attack.format(
                url=gateway.url, socket=gateway.url.replace("http", "ws"), body='{"content":"owned"}'
            )
            assert page.run(f"({script}).then(() => 'done', () => 'failed')") == "failed", name
        form = f"document.body.innerHTML = '<form method=post enctype=text/plain action={gateway.url}/api/broadcast>"
        page.run(form + "<input name=x></form>'; document.forms[0].submit()")
        with pytest.raises(TimeoutError):
            client.recv(timeout=1)
        assert gateway.status()["counts"]["accepted"] == 0


def test_from_a_tool_call_of_an_agent_to_the_page(browser, start):
    gateway = start()
    page = opened(browser, gateway)
    assert state(page, "connected") is True
    target = f"ws://localhost:{gateway.port}/ws"
    call = parse({"action": "send", "payload": {"type": "text", "content": "Build <ok>", "target": target}}).unwrap()
    exchange = describe(call, Gateway(port=gateway.port), Ids("m1")).unwrap()
    done = drive(WebSocketEdge(Http(), Secrets()), exchange).unwrap()
    assert report(call, done) == "Handed to 1 client at /ws"
    assert page.until(f"{TEXTS}[0] === 'Build <ok>'")
