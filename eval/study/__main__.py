"""The models of PLAN.md, parts 2 and 3: encoders that find entities and answers, decoders that predict text.

    python -m eval.study prepare --size tiny|gpu|cpu|cpu-encoder --work FOLDER [--data DATA|corpus:NAME] [--rows REGEX]
    python -m eval.study plan    --size … --work FOLDER
    python -m eval.study train   --size … --work FOLDER [--minutes 9] [--rows REGEX] [--seeds 3]
    python -m eval.study report  --size … --work FOLDER [--out FILE.json] [--page docs/benchmark.md]
    python -m eval.study all     --size cpu --work FOLDER [--data …] [--minutes 9]
    python -m eval.study pairs   --size cpu --work FOLDER [--data …]
    python -m eval.study keep    --size … --work FOLDER

`prepare` wants koktok and no GPU, `train` FOLDER/data, numpy and PyTorch; `plan` prints the budget of what was prepared. Every run of
`train` is kept when it is done, so the same command goes on where it was stopped. `--rows REGEX` and `--seeds 5` take a part.

Size `cpu` (part 3) stops and goes on inside a run, too; several `train` may share a work folder; `--part short` runs a third of the text,
by which a setting is chosen. `all` is `prepare`, `train` and `report`. `keep` puts finished cells into reports/study-cpu, to be committed:
there they count as done on every machine that has the same text, and `report` needs nothing else. Those of other sizes go into
reports/study-encoders, and `report` needs what `prepare` makes. `pairs` writes FOLDER/pairs.jsonl,
minimal pairs for any model (`eval/study/pairs.py` has its format).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eval.machine import write_between
from eval.study.sizes import SIZES, Size


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m eval.study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["plan", "prepare", "train", "report", "pairs", "keep", "all"])
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", help="prepare: another text than the plan's")
    parser.add_argument("--rows", default="", help="regular expression for names of rows")
    parser.add_argument("--seeds", type=int, help="5; of size cpu 3")
    parser.add_argument("--minutes", type=float, default=math.inf, help="train: stop between two runs after so many")
    parser.add_argument("--part", choices=["short", "whole"], default="whole", help="size cpu: how far a run goes")
    parser.add_argument(
        "--threads", type=int, default=1, help="size cpu: of one process; two processes of one thread are faster"
    )
    parser.add_argument("--out", type=Path, help="report: a JSON file")
    parser.add_argument(
        "--page",
        type=Path,
        help="report: a page with the lines `<!-- eval.study -->`, of another size `<!-- eval.study.SIZE -->`, and its end",
    )
    given = parser.parse_args()
    size = SIZES[given.size]
    seconds, data = 60 * given.minutes, given.data or f"corpus:{size.corpus}"
    done = (decoders if given.size == "cpu" else both_kinds)(given, size, data, seconds)
    if not done:
        sys.exit("stopped; the same command goes on")


def decoders(given: argparse.Namespace, size: Size, data: str, seconds: float) -> bool:
    """A step of part 3; whether it came to its end."""
    seeds, done = given.seeds or 3, True
    if given.step in ("prepare", "pairs", "all"):
        from eval.study.asked import prepare

        prepare(size, given.work, data, "(?!)" if given.step == "pairs" else given.rows)
    if given.step in ("train", "all"):
        from eval.study.decoders import train

        done = train(size, given.work, given.rows, seeds, seconds, given.part, given.threads)
    if given.step in ("report", "all"):
        from eval.study.compared import figures
        from eval.study.tables import page

        tell(figures(size, given.work, seeds), page, given.out, given.page, "eval.study")
    if given.step == "plan":
        from eval.study.tables import budget

        print(budget(size, given.work, seeds))
    if given.step == "keep":
        from eval.study.cells import Cells

        Cells(size, given.work).keep()
    return done


def both_kinds(given: argparse.Namespace, size: Size, data: str, seconds: float) -> bool:
    """A step of part 2; whether it came to its end."""
    seeds = given.seeds or 5
    if given.step == "prepare":
        from eval.study.prepare import prepare

        prepare(size, given.work, data, given.rows)
    elif given.step == "train":
        from eval.study.train import train

        return train(size, given.work, given.rows, seeds, seconds)
    elif given.step == "keep":
        from eval.study.train import Runs

        Runs(size, given.work).keep()
    elif given.step in ("pairs", "all"):
        sys.exit(f"expected --size cpu for `{given.step}`, got {given.size}")
    else:
        from eval.study.report import figures, page, plan

        if given.step == "plan":
            print(plan(size, given.work))
        else:
            tell(figures(size, given.work, seeds), page, given.out, given.page, f"eval.study.{given.size}")
    return True


def tell(
    found: dict[str, Any], page: Callable[[dict[str, Any]], str], out: Path | None, where: Path | None, name: str
) -> None:
    """The page of a report, alone or inside another page, and its figures as a file."""
    if where:
        write_between(where, name, page(found))
    else:
        print(page(found))
    if out:
        out.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
