"""A job of Spark's in a process of its own, for tests that kill it or parts of it; they run it as a script.

    python tests/cluster/spark_job.py MASTER HOW TOKENIZER MARKS OUT FILE...

Writes the token files OUT/ids and the count OUT/counts.parquet of some files of text, in six partitions. HOW says what goes
wrong, once in each of some partitions: nothing, executor (its process is killed), stuck (for ever, until somebody kills the driver),
slow (so that Spark runs the task a second time, on another host).
"""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

PARTITIONS = 6


def harmed(how: str, marks: Path) -> Callable[[Any], Any]:
    """A map over batches during which it goes wrong."""

    def pass_on(batches: Any) -> Any:
        import os
        import signal
        import time
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        mark = marks / f"{context.stageId()}-{context.partitionId()}"
        first = not mark.exists()
        mark.touch()
        (marks / f"{mark.name}-{context.taskAttemptId()}.attempt").touch()
        for batch in batches:
            yield batch
            if not first:
                continue
            if how == "executor" and context.partitionId() == 1:
                daemon = int(Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1])
                os.kill(daemon, signal.SIGKILL)
            if how == "slow" and context.partitionId() == 4:
                time.sleep(60)
            if how == "stuck" and context.partitionId() >= 3:
                time.sleep(600)

    return pass_on


def main() -> None:
    warnings.simplefilter("ignore")
    master, how, folder, marks, out, *files = sys.argv[1:]
    import pyspark

    from koktok.cluster.source import register
    from koktok.cluster.spark import count_to_files, read_text, session

    spark = session(
        master,
        **{
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.speculation": str(how == "slow").lower(),
            "spark.speculation.quantile": "0.5",
            "spark.speculation.minTaskRuntime": "1s",
        },
    )
    register(spark)
    text = read_text(spark, files).repartition(PARTITIONS)
    text = text.mapInArrow(harmed(how, Path(marks)), text.schema)
    written = text.write.format("koktok").option("tokenizer", folder).option("shardBytes", "4000").mode("overwrite")
    written.save(f"{out}/ids")
    count_to_files(text, f"{out}/counts.parquet", holdout=0.2)
    # A cluster of processes keeps what its executors said beside Spark itself.
    said = Path(pyspark.__file__).parent / "work" / spark.sparkContext.applicationId
    spark.stop()
    shutil.rmtree(said, ignore_errors=True)


if __name__ == "__main__":
    main()
