"""`KoktokKiwiTokenizer`: a `transformers` tokenizer that asks Kiwi where the morphemes of each eojeol end.

The folder's tokenizer.json runs as it is, with a pre-tokenizer behind the pattern that cuts
each pretoken at the morphemes; so everything that the fast tokenizers of transformers can do works (offsets, `word_ids`,
which now count morphemes, padding, windows), in 4.57 and in 5. The node is Python and cannot be written into a
tokenizer.json: it is taken out for saving and pickling, and put in again after loading.

Importing this module registers the class, so that `AutoTokenizer.from_pretrained` knows it without remote code.
"""

from __future__ import annotations

import copy
import json
import shutil
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from koktok.errors import ArtifactError, MissingExtraError, UsageError
from koktok.integrations.runtime import DICTIONARY, STUB, STUB_NAME, Cutter, with_class

try:
    from transformers import AutoTokenizer, PretrainedConfig, PreTrainedTokenizerFast
except ImportError as error:
    raise MissingExtraError("transformers", "transformers") from error


class KoktokKiwiTokenizer(PreTrainedTokenizerFast):  # type: ignore[misc]
    """A fast tokenizer whose pieces never cross a morpheme boundary that Kiwi sees.

    Made by `koktok.integrations.runtime.save_with_kiwi`, or `koktok export DIR --to hf-kiwi`. Takes and gives what
    `PreTrainedTokenizerFast` does; same vocabulary, same ids, same decode.

    Needs kiwipiepy. Another version of Kiwi than the training's may cut some words differently; a warning says so.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from koktok import Recipe, Tokenizer
    >>> from koktok.integrations.runtime import save_with_kiwi
    >>> from koktok.vocab import Vocab
    >>> pieces = {" ": -9.0, "학": -8.0, "교": -8.0, "에": -7.0, "서": -7.0, "에서": -6.0, "학교": -6.0, "학교에": -1.0}
    >>> folder = save_with_kiwi(Tokenizer(Recipe(), Vocab.unigram(pieces, specials=["</s>"])), mkdtemp())
    >>> KoktokKiwiTokenizer.from_pretrained(folder).tokenize("학교에서")
    ['학교', '에서']
    >>> PreTrainedTokenizerFast.from_pretrained(folder).tokenize("학교에서")
    ['학교에', '서']
    """

    vocab_files_names = {"tokenizer_file": "tokenizer.json", "kiwi_dictionary_file": DICTIONARY}  # noqa: RUF012
    slow_tokenizer_class = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        settings = kwargs.get("koktok_kiwi")
        if not isinstance(settings, dict):
            raise ArtifactError(
                "this folder does not say how Kiwi shall cut: tokenizer_config.json has no `koktok_kiwi`",
                hint="koktok export DIR --to hf-kiwi --out NEW-DIR",
            )
        super().__init__(*args, **kwargs)
        wanted = {name: settings[name] for name in ("policy", "split", "digits", "jamo") if name in settings}
        self._kiwi_dictionary = kwargs.get("kiwi_dictionary_file")
        self._cutter = Cutter(**wanted, user_dictionary=self._kiwi_dictionary)
        trained_with, here = settings.get("trained_with"), self._cutter.signature
        if trained_with and trained_with != here:
            warnings.warn(
                f"the analyser here is {here}, that of the training was {trained_with}; some words may be cut differently",
                stacklevel=2,
            )
        self._install()

    @classmethod
    def convert_to_native_format(cls, **kwargs: Any) -> dict[str, Any]:
        """tokenizer.json as it is: transformers 5 would rebuild it for a class with an `__init__`."""
        kwargs.pop("trust_remote_code", None)
        return kwargs

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = None) -> None:
        """Nothing: transformers would copy this file into saved folders; the stub is written by `_save_pretrained`."""

    def learn(self, texts: Iterable[str]) -> None:
        """Analyse the words of many texts beforehand, on all threads; encoding them then asks nothing."""
        normalize, cutter = self._tokenizer.normalizer.normalize_str, self._cutter
        cutter.learn(word for text in texts for word in cutter.words.pretokenize(normalize(text)))

    def _install(self) -> None:
        """Put the cutting node behind the pattern, and before what turns characters into bytes."""
        from tokenizers import pre_tokenizers

        self._plain = self._tokenizer.pre_tokenizer
        node = json.loads(self._tokenizer.to_str())["pre_tokenizer"]
        first, *rest = map(_part, node["pretokenizers"] if node["type"] == "Sequence" else [node])
        cutting = pre_tokenizers.PreTokenizer.custom(_Cutting(self._cutter))
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence([first, cutting, *rest])

    @contextmanager
    def _without_analyser(self) -> Iterator[None]:
        """The tokenizer as its file says, for as long as somebody writes it down."""
        cutting = self._tokenizer.pre_tokenizer
        self._tokenizer.pre_tokenizer = self._plain
        try:
            yield
        finally:
            self._tokenizer.pre_tokenizer = cutting

    def _save_pretrained(self, save_directory: Any, file_names: tuple[str, ...], *args: Any, **kwargs: Any) -> Any:
        """Both versions come here behind tokenizer_config.json and before anything is uploaded."""
        folder = Path(save_directory)
        prefix = kwargs.get("filename_prefix")
        config = folder / f"{prefix + '-' if prefix else ''}tokenizer_config.json"
        config.write_text(
            with_class(config.read_text(encoding="utf-8"), self.init_kwargs["koktok_kiwi"]), encoding="utf-8"
        )
        (folder / STUB_NAME).write_text(STUB, encoding="utf-8")
        more = [str(folder / STUB_NAME)]
        if self._kiwi_dictionary:
            own = folder / DICTIONARY
            if not (own.exists() and own.samefile(self._kiwi_dictionary)):
                shutil.copyfile(self._kiwi_dictionary, own)
            more.append(str(own))
        with self._without_analyser():
            return super()._save_pretrained(save_directory, (*file_names, *more), *args, **kwargs)

    def train_new_from_iterator(self, *_args: Any, **_kwargs: Any) -> Any:
        """Refused: no analyser takes part in the trainers of Hugging Face."""
        raise UsageError(
            "Hugging Face's trainers know no morphemes, and this tokenizer is nothing without them",
            hint="koktok train TEXT --recipe FOLDER --out NEW-FOLDER",
        )

    def __getstate__(self) -> dict[str, Any]:
        with self._without_analyser():
            return {**self.__dict__, "_tokenizer": copy.deepcopy(self._tokenizer)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._install()


class _Cutting:
    """What `PreTokenizer.custom` asks for."""

    def __init__(self, cutter: Cutter) -> None:
        self._cutter = cutter

    def pre_tokenize(self, text: Any) -> None:
        """Cut every pretoken; the words of a text that are new go to the analyser together."""
        cutter = self._cutter
        cutter.learn(word for part, _, _ in text.get_splits() for word in cutter.words.pretokenize(part))
        text.split(self._parts)

    def _parts(self, _i: int, pretoken: Any) -> list[Any]:
        places = [0, *self._cutter.cuts(pretoken.normalized), len(pretoken.normalized)]
        return [pretoken[a:b] for a, b in pairwise(places)]


def _part(node: dict[str, Any]) -> Any:
    """A pre-tokenizer of its JSON, which only whole tokenizers are read from."""
    from tokenizers import Tokenizer

    nothing = ("truncation", "padding", "normalizer", "post_processor", "decoder")
    whole: dict[str, Any] = {"version": "1.0", **dict.fromkeys(nothing), "added_tokens": [], "pre_tokenizer": node}
    model = {"type": "BPE", "vocab": {}, "merges": []}
    return Tokenizer.from_str(json.dumps({**whole, "model": model})).pre_tokenizer


class _Config(PretrainedConfig):  # type: ignore[misc]
    """No model has it: `AutoTokenizer` registers tokenizers by the configuration of a model."""

    model_type = "koktok-kiwi"


AutoTokenizer.register(_Config, fast_tokenizer_class=KoktokKiwiTokenizer, exist_ok=True)
