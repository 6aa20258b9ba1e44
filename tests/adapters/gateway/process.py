"""A gateway as a process: host, port, token (or empty), seconds that the channel takes."""

import sys
import time
from pathlib import Path

from messaging_adapters.gateway import run
from messaging_core.config.settings import Gateway, Settings
from messaging_core.secrecy import Secret, Secrets


def main(host, port, token="", pace="0", written=""):
    def deliver(arguments):
        time.sleep(float(pace))
        if written:
            Path(written).write_text(arguments["text"], encoding="utf-8")
        return {"status": "delivered", "message": f"sent to {arguments['channel']}"}

    gateway = Gateway(host, int(port) or 1, Secret("gateway.token") if token else None)
    return run(Settings(gateway=gateway), Secrets({"gateway.token": token}), port=int(port), deliver=deliver)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
