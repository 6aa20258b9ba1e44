"""A real Matrix homeserver: Synapse with SQLite, three accounts, a room with an alias, and media.

``python -m tests.servers.synapse`` starts one and prints how to reach it.
"""

import hashlib
import hmac
import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.running import HOST, free_port, listens, process, venv

VERSION = "1.163.2"
NAME = "matrix.test"
SHARED_SECRET = "registration-of-a-test-server"


@dataclass(frozen=True)
class Account:
    user: str
    token: str


@dataclass(frozen=True)
class Homeserver:
    """``room``: alice made it and bob is in it; carol is in none. ``alias`` names it."""

    url: str
    alice: Account
    bob: Account
    carol: Account
    room: str
    alias: str

    def call(self, method: str, path: str, account: Account | None = None, body: Any = None) -> Any:
        """What another client sees: one call of the client-server API."""
        return call(self.url, method, path, account.token if account else None, body)

    def event(self, room: str, id: str, account: Account) -> Any:
        return self.call("GET", f"/_matrix/client/v3/rooms/{quoted(room)}/event/{quoted(id)}", account)

    def messages(self, room: str, account: Account) -> list[Any]:
        """The latest messages of a room, newest first."""
        path = f"/_matrix/client/v3/rooms/{quoted(room)}/messages?dir=b&limit=50"
        chunk = self.call("GET", path, account)["chunk"]
        return [event for event in chunk if event["type"] == "m.room.message"]

    def download(self, mxc: str, account: Account) -> bytes:
        path = f"{self.url}/_matrix/client/v1/media/download/{mxc.removeprefix('mxc://')}"
        request = urllib.request.Request(path, headers={"Authorization": f"Bearer {account.token}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())


def quoted(text: str) -> str:
    return urllib.request.quote(text, safe="")


def call(url: str, method: str, path: str, token: str | None = None, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(url + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


@contextmanager
def running(folder: Path, messages_per_second: float = 10_000, burst: int = 10_000) -> Iterator[Homeserver]:
    """A fresh homeserver in ``folder``. A low rate and burst make it answer 429 as a public one does."""
    binaries = venv("synapse", f"matrix-synapse=={VERSION}") / "bin"
    port = free_port()
    config = folder / "homeserver.yaml"
    config.write_text(_config(folder, port, messages_per_second, burst))
    (folder / "log.yaml").write_text("{version: 1, root: {level: WARNING}, disable_existing_loggers: false}")
    server = [str(binaries / "python"), "-m", "synapse.app.homeserver", "-c", str(config)]
    url = f"http://{HOST}:{port}"
    with process([*server, "--generate-keys"], folder / "keys.log", (folder / "signing.key").exists):
        pass
    with process(server, folder / "synapse.log", lambda: listens(port)):
        alice, bob, carol = (_register(url, name) for name in ("alice", "bob", "carol"))
        invite = {"preset": "private_chat", "name": "Test room", "room_alias_name": "test", "invite": [bob.user]}
        room = call(url, "POST", "/_matrix/client/v3/createRoom", alice.token, invite)["room_id"]
        call(url, "POST", f"/_matrix/client/v3/join/{quoted(room)}", bob.token, {})
        yield Homeserver(url, alice, bob, carol, room, f"#test:{NAME}")


def _register(url: str, name: str) -> Account:
    """An account by the shared secret (https://element-hq.github.io/synapse/latest/admin_api/register_api.html)."""
    nonce = call(url, "GET", "/_synapse/admin/v1/register")["nonce"]
    signed = "\0".join((nonce, name, f"{name}-password", "notadmin")).encode()
    mac = hmac.new(SHARED_SECRET.encode(), signed, hashlib.sha1).hexdigest()
    body = {"nonce": nonce, "username": name, "password": f"{name}-password", "admin": False, "mac": mac}
    made = call(url, "POST", "/_synapse/admin/v1/register", None, body)
    return Account(made["user_id"], made["access_token"])


def _config(folder: Path, port: int, per_second: float, burst: int) -> str:
    free = {"per_second": 10_000, "burst_count": 10_000}
    settings = {
        "server_name": NAME,
        "public_baseurl": f"http://{HOST}:{port}/",
        "listeners": [
            {"port": port, "bind_addresses": [HOST], "type": "http", "tls": False, "resources": [{"names": ["client"]}]}
        ],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "homeserver.db")}},
        "log_config": str(folder / "log.yaml"),
        "pid_file": str(folder / "synapse.pid"),
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "registration_shared_secret": SHARED_SECRET,
        "macaroon_secret_key": "macaroons-of-a-test-server",
        "form_secret": "forms-of-a-test-server",
        "max_upload_size": "300M",
        "report_stats": False,
        "trusted_key_servers": [],
        "suppress_key_server_warning": True,
        "federation_domain_whitelist": [],
        "rc_message": {"per_second": per_second, "burst_count": burst},
        "rc_registration": free,
        "rc_login": {"address": free, "account": free, "failed_attempts": free},
        "rc_joins": {"local": free, "remote": free},
        "rc_invites": {"per_room": free, "per_user": free, "per_issuer": free},
        "rc_room_creation": free,
        "rc_media_create": free,
    }
    return json.dumps(settings)  # JSON is YAML


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary, running(Path(temporary)) as homeserver:
        print(homeserver)
        input("Enter ends it. ")
