"""The models of PLAN.md, part 2: encoders that find entities and answers, decoders that predict text, over seven vocabularies.

    python -m eval.study plan    --size tiny|gpu --work FOLDER
    python -m eval.study prepare --size … --work FOLDER [--data DATA|corpus:NAME]
    python -m eval.study train   --size … --work FOLDER [--minutes 9]
    python -m eval.study report  --size … --work FOLDER [--out FILE.json]

`prepare` wants koktok and no GPU, `train` FOLDER/data, numpy and PyTorch; `plan` prints the budget of what was prepared. Every run of
`train` is kept when it is done, so the same command goes on where it was stopped. `--rows REGEX` and `--seeds 5` take a part.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

from eval.study.sizes import SIZES


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m eval.study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["plan", "prepare", "train", "report"])
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", help="prepare: another text than the plan's")
    parser.add_argument("--rows", default="", help="regular expression for names of rows")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=math.inf, help="train: stop between two runs after so many")
    parser.add_argument("--out", type=Path, help="report: a JSON file")
    given = parser.parse_args()
    size = SIZES[given.size]
    if given.step == "prepare":
        from eval.study.prepare import prepare

        prepare(size, given.work, given.data or f"corpus:{size.corpus}", given.rows)
    elif given.step == "plan":
        from eval.study.report import plan

        print(plan(size, given.work))
    elif given.step == "train":
        from eval.study.train import train

        if not train(size, given.work, given.rows, given.seeds, 60 * given.minutes):
            sys.exit("stopped between two runs; the same command goes on")
    else:
        from eval.study.report import figures, page

        found = figures(size, given.work, given.seeds)
        print(page(found))
        if given.out:
            given.out.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
