"""A saved folder on the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path

from koktok.errors import MissingExtraError, UsageError
from koktok.formats.folder import MARK


def push_to_hub(folder: str | Path, repo: str, *, private: bool = False, token: str | None = None) -> str:
    """Upload a saved tokenizer with its card, koktok.toml and probe.json, in one commit.

    Parameters
    ----------
    folder : str or Path
        A folder of `save`, `koktok train` or `koktok export --to hf`.
    repo : str
        `OWNER/NAME`; created if it does not exist.
    private : bool
        Whether a new one is private.
    token : str, optional
        As of `hf auth login` by default.

    Returns
    -------
    str
        Address of the commit.

    Raises
    ------
    UsageError
        When koktok did not write the folder.
    MissingExtraError
        Without the extra `hub`.
    """
    place = Path(folder)
    if not (place / MARK).is_file():
        raise UsageError(f"expected a folder with a {MARK}, got `{place}`", hint="koktok train TEXT -o FOLDER")
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise MissingExtraError("huggingface_hub", "hub") from None
    api = HfApi(token=token)
    api.create_repo(repo, private=private, exist_ok=True)
    return str(api.upload_folder(folder_path=place, repo_id=repo, commit_message=f"koktok: {place.name}"))
