"""Finding and reading the configuration file; what it means is decided by :mod:`messaging_core.config`."""

import os
from collections.abc import Mapping
from pathlib import Path

from returns.result import Failure, Result

from messaging_core.channels import Registry
from messaging_core.config.document import Format
from messaging_core.config.schemas import load
from messaging_core.config.settings import Configuration
from messaging_core.errors import ConfigError, ConfigErrors

VARIABLE = "MESSAGING_CONFIG"
HERE = ("daemon.yaml", "messaging.yaml", "messaging.toml")
LARGEST = 5_000_000
"""Bytes; a configuration is never that large, and it is read whole."""


class ConfigurationInvalid(Exception):
    """The configuration has faults: ``errors``, each with file, line, key and what would be right."""

    def __init__(self, errors: ConfigErrors) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = errors


def find(named: str | None, environ: Mapping[str, str]) -> Path | None:
    """The file: as named, ``$MESSAGING_CONFIG``, in the working folder, in the user's configuration folder; None where
    there is none. One that is there and cannot be read is chosen all the same, since passing it over would send by
    another one."""
    chosen = named or environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    places = (*map(Path, HERE), *(_own_folder(environ) / name for name in HERE[1:]))
    return next((place for place in places if os.path.lexists(place) and not os.path.isdir(place)), None)


def _own_folder(environ: Mapping[str, str]) -> Path:
    """The user's (https://specifications.freedesktop.org/basedir-spec/latest/). Where there is no home, ``~`` stays as
    it is, and nothing is found there."""
    own = environ.get("XDG_CONFIG_HOME", "")
    return Path(own if os.path.isabs(own) else os.path.expanduser("~/.config")) / "messaging"


def read(path: Path, environ: Mapping[str, str], registry: Registry) -> Result[Configuration, ConfigErrors]:
    """The configuration in ``path``; YAML, or TOML by its ending."""
    where = str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        return Failure((ConfigError(where, None, "", f"cannot be read ({error.strerror or 'unreadable'})"),))
    kind: Format = "toml" if path.suffix.lower() == ".toml" else "yaml"
    return load(raw, kind, environ, registry, where=where)
