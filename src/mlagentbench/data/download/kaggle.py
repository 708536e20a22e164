"""Ask Kaggle for the files of competitions with kagglesdk, Kaggle's own client."""

from __future__ import annotations

import os
from pathlib import Path

from mlagentbench.data.download.transfer import TEMPORARY, Interrupted
from mlagentbench.errors import TaskError

SETTINGS = "https://www.kaggle.com/settings"


def page_of(slug: str) -> str:
    """Return the URL of a competition's page."""
    return f"https://www.kaggle.com/competitions/{slug}"


def find_file(slug: str, file: str | None = None) -> str:
    """Return the URL from which a file of a competition, or the archive of all its files, can be downloaded for some days.

    Raises:
        TaskError: there is no key, the rules are not accepted, or Kaggle does not have the file.
        Interrupted: the connection failed, or Kaggle may answer later.
    """
    import requests
    from kagglesdk.competitions.types.competition_api_service import ApiDownloadDataFileRequest, ApiDownloadDataFilesRequest
    from kagglesdk.kaggle_client import KaggleClient
    from kagglesdk.kaggle_env import get_access_token_from_env

    username, key = os.environ.get("KAGGLE_USERNAME"), os.environ.get("KAGGLE_KEY")
    if not (username and key) and not get_access_token_from_env()[0] and not Path("~/.kaggle/kaggle.json").expanduser().exists():
        raise _key_error(slug, "Kaggle asks for a key")
    try:
        with KaggleClient(username=username, password=key, user_agent="mlagentbench") as client:
            api = client.competitions.competition_api_client
            if file is None:
                request = ApiDownloadDataFilesRequest()
                request.competition_name = slug
                response = api.download_data_files(request)
            else:
                request = ApiDownloadDataFileRequest()
                request.competition_name, request.file_name = slug, file
                response = api.download_data_file(request)
            response.close()  # it is the file itself, at its signed URL, and nothing of it has been read
            return str(response.url)
    except requests.HTTPError as error:
        error.response.close()
        raise _refusal(slug, file, error.response.status_code) from None
    except requests.RequestException as error:
        raise Interrupted(f"the connection to Kaggle failed: {type(error).__name__}") from None


def _refusal(slug: str, file: str | None, status: int) -> Exception:
    what = f"{file} of the competition {slug}" if file else f"the competition {slug}"
    if status in TEMPORARY:
        return Interrupted(f"Kaggle says {status}")
    if status == 401:
        return _key_error(slug, "Kaggle does not take your key")
    if status == 403:
        rules = f"{page_of(slug)}/rules"
        return TaskError(f"Kaggle does not give out {what}: accept its rules at {rules} with the account of your key, then try again")
    if status == 404:
        return TaskError(f"Kaggle does not know {what} ({page_of(slug)}/data)")
    return TaskError(f"cannot download {what} from Kaggle: HTTP {status}")


def _key_error(slug: str, problem: str) -> TaskError:
    return TaskError(
        f"{problem}: make one at {SETTINGS} and set KAGGLE_API_TOKEN, or KAGGLE_USERNAME and KAGGLE_KEY, or put it into "
        f"~/.kaggle/kaggle.json; and accept the rules of the competition at {page_of(slug)}/rules"
    )
