"""Download files of Kaggle competitions with kagglehub, in a child process.

kagglehub reads its cache's path from environment variables, prints to standard output and sets up logging on import; the child process
keeps all that away from ours. It inherits the lock on the download, so that it can finish undisturbed if its parent is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from mlagentbench.data.transfer import FIRST_WAIT, LONGEST_WAIT
from mlagentbench.errors import TaskError

SETTINGS = "https://www.kaggle.com/settings"
TRIES = 5
"""How many tries in a row may fail without having received anything."""
BROKEN, DAMAGED, NO_KEY, REFUSED = "broken", "damaged", "no key", "refused"


class Competition(NamedTuple):
    """A competition, and the folder that kagglehub uses as its cache for this competition only."""

    slug: str
    cache: Path

    @property
    def page(self) -> str:
        """The URL of its page."""
        return f"https://www.kaggle.com/competitions/{self.slug}"

    @property
    def files(self) -> Path:
        """The folder of its files."""
        return self.cache / "competitions" / self.slug

    @property
    def archive(self) -> Path:
        """The archive of all files, which exists until it is unpacked."""
        return self.cache / "competitions" / f"{self.slug}.archive"

    def names(self) -> Sequence[str]:
        """Return the paths of its downloaded files, sorted."""
        return sorted(str(path.relative_to(self.files)) for path in self.files.rglob("*") if path.is_file())

    def size(self) -> int:
        """Return the bytes downloaded so far."""
        return sum(path.stat().st_size for path in self.cache.rglob("*") if path.is_file())


def fetch(competition: Competition, file: str | None, *, mirror: str, lock: IO[bytes], show: bool) -> None:
    """Download one file of a competition, or all, with kagglehub. A download that fails is resumed by the next try or call.

    Args:
        competition: the competition.
        file: the file's path; None for all files, as an archive that is then unpacked.
        mirror: the URL of a server used as a proxy for all others; empty for none.
        lock: a lock file that the child inherits, so that the lock is held until the child ends, even if this process is killed.
        show: whether kagglehub's progress bar may be written to standard error.

    Raises:
        TaskError: there is no key, the rules are not accepted, or the download failed.
    """
    failures = 0
    while True:
        before = competition.size()
        answer = _ask(competition, file, mirror, lock, show)
        if "path" in answer:
            return
        failures = failures + 1 if competition.size() <= before else 1
        if answer["failure"] not in (BROKEN, DAMAGED) or failures >= TRIES:
            raise _error(competition, file, answer)
        if answer["failure"] == DAMAGED:
            competition.archive.unlink(missing_ok=True)
        time.sleep(min(FIRST_WAIT * 2 ** (failures - 1), LONGEST_WAIT))


def _ask(competition: Competition, file: str | None, mirror: str, lock: IO[bytes], show: bool) -> Mapping[str, str]:
    environment = {
        **os.environ,
        "KAGGLEHUB_CACHE": str(competition.cache),
        "KAGGLEHUB_VERBOSITY": "error",
        "DISABLE_KAGGLE_CACHE": "true",
        "DISABLE_COLAB_CACHE": "true",
    }
    if mirror:
        # kagglehub cannot be given another server's URL. Its LOCALHOST setting uses plain HTTP, which goes through a proxy.
        environment |= {"KAGGLE_API_ENVIRONMENT": "LOCALHOST", "http_proxy": mirror, "HTTP_PROXY": mirror, "no_proxy": "", "NO_PROXY": ""}
    if not show:
        environment["TQDM_DISABLE"] = "1"
    command = [sys.executable, "-m", __name__, competition.slug, *([file] if file else [])]
    child = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if show else subprocess.PIPE,
        text=True,
        pass_fds=(lock.fileno(),),
    )
    try:
        told, complaints = child.communicate()
    finally:
        child.kill()
        child.wait()
    try:
        answer = json.loads(told)
        return {str(key): str(value) for key, value in answer.items()}
    except ValueError:
        last = (complaints or "").strip().rpartition("\n")[2]
        return {"failure": "crash", "detail": last or f"kagglehub ended with status {child.returncode}"}


def _error(competition: Competition, file: str | None, answer: Mapping[str, str]) -> TaskError:
    what = f"{file} of the competition {competition.slug}" if file else f"the competition {competition.slug}"
    rules = f"{competition.page}/rules"
    detail = " ".join(answer.get("detail", "").split())
    status = answer.get("status", "")
    if answer["failure"] == NO_KEY or status == "401":
        lacks = "Kaggle does not take your key" if status else "Kaggle asks for a key"
        return TaskError(
            f"{lacks}: make one at {SETTINGS} and set KAGGLE_API_TOKEN, or KAGGLE_USERNAME and KAGGLE_KEY, or put it into "
            f"~/.kaggle/kaggle.json; and accept the rules of the competition at {rules}"
        )
    if status == "403":
        return TaskError(f"Kaggle does not give out {what}: accept its rules at {rules} with the account of your key, then try again")
    if status == "404":
        return TaskError(f"Kaggle does not know {what} ({competition.page}/data)")
    if answer["failure"] == BROKEN:
        return TaskError(f"cannot download {what} from Kaggle: {detail}; what has come is kept, so try again later")
    return TaskError(f"cannot download {what} from Kaggle: {detail}")


def main(arguments: Sequence[str]) -> None:
    """Run the child process: download, and print the outcome as JSON."""
    slug, file = arguments[0], arguments[1] if len(arguments) > 1 else None
    out, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps(_fetch(slug, file)), file=out)


def _fetch(slug: str, file: str | None) -> Mapping[str, str]:
    import kagglehub
    import requests
    from kagglehub.exceptions import CredentialError, DataCorruptionError, UnauthenticatedError

    try:
        return {"path": kagglehub.competition_download(slug, path=file)}
    except (UnauthenticatedError, CredentialError):
        return {"failure": NO_KEY}
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        passing = status == 429 or status >= 500
        return {"failure": BROKEN if passing else REFUSED, "status": str(status), "detail": f"HTTP {status}"}
    except (DataCorruptionError, zipfile.BadZipFile, ValueError) as error:
        return {"failure": DAMAGED, "detail": f"what came is damaged: {error}"}
    except requests.RequestException as error:
        return {"failure": BROKEN, "detail": f"the connection failed: {type(error).__name__}"}
    except OSError as error:
        return {"failure": REFUSED, "detail": f"{error.strerror}: {error.filename or 'the cache'}"}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches the whole process group, and the parent reports it
    main(sys.argv[1:])
