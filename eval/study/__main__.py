"""The model study of PLAN.md: what a morpheme-aware vocabulary does for a Korean language model.

    python -m eval.study prepare --size tiny|night|gpu --work FOLDER [--corpus DATA|corpus:NAME] [--reviews FOLDER] [--topics FILE]
    python -m eval.study train   --size … --work FOLDER [--minutes 30] [--compile] [--task encoder]
    python -m eval.study probe   --size … --work FOLDER
    python -m eval.study report  --size … --work FOLDER [--report FILE.md]

All take `--tokenizers a,b` and `--seeds 0,1,2`; without them it is what the plan fixes for the size. Every step goes on where it was
stopped. `prepare` writes FOLDER/data, which is all that a training machine needs beside this repository, numpy and PyTorch; with
OMP_NUM_THREADS=1 a run on a CPU gives the same losses every time. `--reviews` is raw/ of github.com/e9t/nsmc, `--topics`
klue_benchmark/ynat-v1.1/ynat-v1.1_dev.json of github.com/KLUE-benchmark/KLUE. It wants `pip install 'koktok[train,instances]'`.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from eval.study.sizes import ALL, CELLS, SIZES


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m eval.study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["prepare", "train", "probe", "report"])
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--tokenizers", help="separated by commas")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--corpus", help="prepare: another text than the plan's, to try things out")
    parser.add_argument("--reviews", type=Path, help="prepare: for the probe of sentiment")
    parser.add_argument("--topics", type=Path, help="prepare: for the probe of topics")
    parser.add_argument(
        "--labelled",
        metavar="TASK=FILE",
        action="append",
        default=[],
        help="prepare: lines of `label TAB text [TAB text]`",
    )
    parser.add_argument("--task", choices=["language-model", "encoder"], default="language-model", help="train")
    parser.add_argument("--minutes", type=float, default=math.inf, help="train: stop at a checkpoint after so many")
    parser.add_argument("--compile", action="store_true", help="train: with torch.compile")
    parser.add_argument("--report", type=Path, help="report: a Markdown file; a JSON is written beside it")
    given = parser.parse_args()
    size = SIZES[given.size]
    names = given.tokenizers.split(",") if given.tokenizers else CELLS[given.size]
    if unknown := set(names) - set(ALL):
        parser.error(f"no such tokenizers: {', '.join(sorted(unknown))}; there are: {', '.join(ALL)}")
    if given.step == "prepare":
        from eval.study.prepare import labelled, prepare, reviews, topics

        classes = {"sentiment": reviews(given.reviews)} if given.reviews else {}
        classes |= {"topic": topics(given.topics)} if given.topics else {}
        classes |= {task: labelled(Path(path)) for task, _, path in (word.partition("=") for word in given.labelled)}
        prepare(given.size, size, given.work, names, given.corpus, classes)
        return
    from eval.study.train import Runs, train

    runs = Runs(size, given.work, seconds=60 * given.minutes, compiled=given.compile)
    seeds = [int(seed) for seed in given.seeds.split(",")]
    if given.step == "train":
        if given.task == "encoder":
            from eval.study.encoder import encoders as train
        if not train(runs, names, seeds):
            print("stopped at a checkpoint; the same command goes on", file=sys.stderr)
            sys.exit(3)
    elif given.step == "probe":
        from eval.study.probe import probe

        probe(runs, names, seeds)
    else:
        from eval.study.report import report

        report(runs, given.size, names, seeds, given.report)


if __name__ == "__main__":
    main()
