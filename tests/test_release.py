"""What is published beside the package: the conda recipe, and the playground as a Space."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from conftest import ROOT

import koktok


def test_the_conda_recipe_has_the_version_and_the_dependencies_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / ".ci" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    wanted = [requirement.partition(";")[0].split("#")[0].strip() for requirement in project["dependencies"]]
    needs = re.findall(r"^    - ([a-z][\w.-]* [<>=].*)$", recipe, re.M)
    assert [need.replace(" ", "") for need in needs] == ["python>=3.11", *wanted]
    assert f'version: "{project["version"]}"' in recipe


def test_the_space_of_the_guide_is_a_page_with_a_card(trained: Callable[..., Path], tmp_path: Path) -> None:
    import huggingface_hub as hub

    guide = (ROOT / "docs" / "guides" / "playground.md").read_text(encoding="utf-8")
    commands = re.search(r"^```\n(mkdir .*?)^```", guide, re.M | re.S)[1]
    (tmp_path / "my-tokenizer").symlink_to(trained())
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(commands, shell=True, check=True, cwd=tmp_path, env={**os.environ, "PATH": path})
    assert {file.name for file in (tmp_path / "space").iterdir()} == {"index.html", "README.md"}
    assert hub.SpaceCard.load(tmp_path / "space" / "README.md").data.sdk == "static"


def test_the_card_is_read_by_the_hub(mini: list[str], tmp_path: Path) -> None:
    import huggingface_hub as hub

    card = hub.ModelCard.load(koktok.train(mini, vocab_size=2300).save(tmp_path / "made") / "README.md")
    assert (card.data.library_name, card.data.language) == ("koktok", ["ko"])
    assert {"transformers", "tokenizer"} <= {*card.data.tags}
