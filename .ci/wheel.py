"""Build the wheel, compare it with the folders, and use it in a fresh environment away from the sources."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = Path(sys.argv[1])


def run(*command: object, cwd: Path = ROOT) -> str:
    return subprocess.run([str(c) for c in command], cwd=cwd, check=True, text=True, stdout=subprocess.PIPE).stdout


def sources() -> set[str]:
    """Every file that an installed package needs, under its import name."""
    wanted = {".py", ".typed", ".html"}
    found = set()
    for folder in (ROOT / "messaging_core", ROOT / "adapters" / "messaging_adapters"):
        found |= {str(f.relative_to(folder.parent)) for f in folder.rglob("*") if f.suffix in wanted}
    return found


run(sys.executable, "-m", "build", "--outdir", WORK / "dist", ROOT)
(wheel,) = (WORK / "dist").glob("*.whl")
names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
if names != sources():
    sys.exit(f"the wheel and the folders differ: {sorted(names ^ sources())}")

environment = WORK / "elsewhere"
run(sys.executable, "-m", "venv", environment)
run(environment / "bin" / "pip", "install", "-q", wheel)
run(environment / "bin" / "python", "-c", "import messaging_core, messaging_adapters.messenger", cwd=WORK)
said = run(environment / "bin" / "messaging", "send", "hello", cwd=WORK)
if said != "hello\n":
    sys.exit(f"the installed command said {said!r}")
print(f"{wheel.name}: {len(names)} files, as in the folders; the command works elsewhere")
