"""A file of 200 MB costs no more memory than a small one: it is streamed from disk to the socket.

The limits of the platforms are lifted for this, as a Bot API server of one's own lifts Telegram's.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.loopback import Loopback
from tests.material import ROOT, png
from tests.platforms import discord, telegram, whatsapp
from tests.platforms.doors import DISCORD, SLACK, TELEGRAM, WEBHOOK, WHATSAPP, doors

SIZE = 200 * 1024 * 1024
MOST = 20 * 1024 * 1024

SENDER = """
import json, re, sys
from dataclasses import replace
from pathlib import Path
from messaging_adapters.messenger import Messenger
from messaging_adapters.registry import INSTALLED

def peak():
    # Not getrusage: its figure begins with that of the process which started this one.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

config, platform, small, large = json.loads(sys.argv[1]), *sys.argv[2:]
channel = INSTALLED[platform]
channel = replace(channel, limits=replace(channel.limits, files=(), any_file=10**10))
with Messenger.from_config(config, registry={**INSTALLED, platform: channel}) as messenger:
    first = messenger.call_tool("message_send", {"media_path": small, "caption": "small"})
    before = peak()
    second = messenger.call_tool("message_send", {"media_path": large, "caption": "large"})
    after = peak()
print(json.dumps([first.ok, second.ok, second.message, after - before]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
@doors(TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP)
def test_200_mb_arrive_whole_in_less_than_20_mb_of_memory(door, tmp_path):
    model = {
        "telegram": lambda: telegram.Telegram(file_limit=2**31),
        "discord": lambda: discord.Discord(file_limit=2**31),
        "discord-webhook": lambda: discord.Discord(file_limit=2**31),
        "whatsapp": lambda: whatsapp.WhatsApp(document_limit=2**31),
    }.get(door.platform, door.model)
    small, large, digest = tmp_path / "small.bin", tmp_path / "large.bin", hashlib.sha256()
    small.write_bytes(b"\x07\xff" + png())
    with large.open("wb") as file:
        for block in range(SIZE // 2**20):
            data = hashlib.sha256(b"%d" % block).digest() * 2**15
            file.write(data)
            digest.update(data)
    far_end = model()
    with Loopback(respond=far_end) as server:
        config = {**door.config(server.url), "media_roots": [str(tmp_path)], "http": {"read_timeout": 120}}
        done = subprocess.run(
            [sys.executable, "-c", SENDER, json.dumps(config), door.platform, str(small), str(large)],
            env={"PYTHONPATH": f"{ROOT}:{ROOT / 'adapters'}", "XDG_STATE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    first, second, message, grown = json.loads(done.stdout)
    assert first and second, message
    arrived = door.arrived(far_end)
    assert [one.file.name for one in arrived if one.file] == ["small.bin", "large.bin"]
    assert hashlib.sha256(arrived[-1].file.data).hexdigest() == digest.hexdigest()
    print(f"{door.platform}: {grown / 2**20:.1f} MiB")
    assert grown < MOST and far_end.refused == []
