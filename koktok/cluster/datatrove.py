"""Steps of a datatrove pipeline: counting words, and the token files that Nanotron reads.

The steps run on datatrove's executors (local, Slurm, Ray) and call the code of one machine. The files of a rank are a
function of its documents, so datatrove may run a rank again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from koktok.count.count_files import About, Counted, runs_file, write_counts
from koktok.count.shards import SHARD, Shards, parts
from koktok.errors import MissingExtraError, UsageError
from koktok.files import scratch
from koktok.text.kinds import is_count
from koktok.text.records import ReadReport
from koktok.text.sources import read
from koktok.tokenizer import TrainedTokenizer

try:
    from datatrove.io import get_datafolder
    from datatrove.pipeline.base import PipelineStep
    from datatrove.pipeline.tokens.tokenizer import DocumentTokenizer, TokenizedFile
    from datatrove.utils.batching import batched
except ImportError:
    raise MissingExtraError("datatrove", "datatrove") from None


class KoktokCounter(PipelineStep):  # type: ignore[misc]
    """Count the words of documents, and pass them to the next step; `koktok count merge FOLDER/*.parquet` adds the ranks up."""

    name = "Count words"
    type = "koktok"

    def __init__(self, output_folder: Any, *, name: str = "text", holdout: float = 0.05, runs: bool = False) -> None:
        super().__init__()
        self.output_folder = get_datafolder(output_folder)
        self.source = name
        self.holdout = holdout
        self.runs = runs

    def run(self, data: Iterable[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:  # noqa: ARG002 - datatrove's
        """Count the documents of a rank on their way."""
        name, report = f"{self.source}-{rank:05d}", ReadReport()
        with Shards(holdout=self.holdout, by="documents", runs=self.runs, threads=1) as shards:
            for documents in _portions(data):
                with self.track_time(unit="batch"):
                    shards.count(read([document.text for document in documents], report=report), name=name)
                for document in documents:
                    self.stat_update("documents")
                    yield document
            covered = (Counted(name, shards.digest(), report.lines, self.holdout),)
            with scratch("koktok-datatrove") as folder:
                file = folder / f"{rank:05d}.parquet"
                write_counts(file, parts(shards.words), About("words", covered))
                if self.runs:
                    write_counts(runs_file(file), parts(shards.runs), About("runs", covered))
                for file in sorted(folder.glob("*.parquet")):
                    self._check(file.name)
                    with file.open("rb") as source, self.output_folder.open(file.name, "wb") as target:
                        shutil.copyfileobj(source, target)

    def _check(self, name: str) -> None:
        """Refuse to write over what is no count; a rank that runs again writes over its own."""
        if not self.output_folder.exists(name):
            return
        with self.output_folder.open(name, "rb") as standing:
            if not is_count(standing):
                raise UsageError(
                    f"`{name}` in `{self.output_folder.path}` is not a count", hint="another output_folder"
                )


def _portions(data: Iterable[Any]) -> Iterator[list[Any]]:
    """Documents with as much text as one shard of a count."""
    held: list[Any] = []
    size = 0
    for document in data:
        held.append(document)
        size += len(document.text.encode(errors="surrogatepass"))
        if size >= SHARD:
            yield held
            held, size = [], 0
    if held:
        yield held


class KoktokTokenizer(DocumentTokenizer):  # type: ignore[misc]
    """Datatrove's `DocumentTokenizer` with koktok's bulk encoder: the same `.ds`, `.index` and `.metadata`, byte for byte.

    `eos_token` is the token after each document; True stands for the tokenizer's own, as in `koktok encode --eos`.
    """

    name = "Tokenize"
    type = "koktok"

    def __init__(
        self,
        output_folder: Any,
        tokenizer: str | Path,
        *,
        eos_token: str | bool | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        if options.get("save_loss_metadata"):
            raise UsageError(
                "koktok does not write loss masks", hint="datatrove's DocumentTokenizer with tokenizer.json"
            )
        self.folder = Path(tokenizer)
        opened = TrainedTokenizer.load(tokenizer)
        after = opened.edge("eos", token=eos_token or False)
        super().__init__(
            output_folder,
            str(self.folder / "tokenizer.json"),
            eos_token=after[0] if after else None,
            seed=seed,
            **options,
        )
        self.digest = opened.digest()

    def write_unshuffled(self, data: Iterable[Any], filename: str) -> Any:
        """The ids of a rank's documents in their order, as a TokenizedFile."""
        tokenizer = TrainedTokenizer.load(self.folder)
        if tokenizer.digest() != self.digest:
            raise UsageError(f"the tokenizer in `{self.folder}` is not the one that the pipeline was made with")
        shuffled = self.shuffle_documents or self.shuffle_chunk_size
        file = TokenizedFile(
            self.local_working_dir if shuffled and self.local_working_dir else self.output_folder,
            filename,
            save_index=self.save_index or shuffled,
            upload_block_size=self.upload_block_size,
            tokenizer_name_or_path=self.tokenizer_name_or_path,
            save_final_metadata=self.save_final_metadata,
            token_size=self.token_size,
        )
        dtype = np.dtype(np.uint32 if self.token_size == 4 else np.uint16)
        for documents in batched(data, self.batch_size):
            with self.track_time(unit="batch"):
                tokens = tokenizer.encode_ids(
                    [document.text for document in documents],
                    threads=1,
                    dtype=dtype,
                    add_special_tokens=self.eos_token is None,
                    after=[] if self.eos_token is None else [self.eos_token],
                )
                file.write_bytes(tokens.ids.astype(dtype.newbyteorder("<")).tobytes(), tokens.indptr[1:].tolist())
                for size in np.diff(tokens.indptr).tolist():
                    self.stat_update("tokens", value=size)
        file.close()
        return file
