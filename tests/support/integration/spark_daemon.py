"""The process that forks Spark's Python workers, without PySpark's archives on its path.

Before each task, a worker makes Python forget what it knows of the path. Until Python 3.13, it then
reads the tables of contents of all archives there, which takes longer than a small task.
`spark.python.daemon.module` names this module; the demo and `program_application` keep Spark's.
"""

from __future__ import annotations

import gc
import sys

DAEMON = "tests.support.integration.spark_daemon"


def main() -> None:
    for path in [path for path in sys.path if path.endswith((".zip", ".jar"))]:
        sys.path.remove(path)
        sys.path_importer_cache.pop(path, None)
    from pyspark.daemon import manager

    # After each task, a worker looks for garbage in all that was imported.
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
