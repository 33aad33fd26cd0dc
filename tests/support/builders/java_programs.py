"""Programs in Java with Iceberg on the class path: one source file each, compiled anew."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.builders.jars import Artifact, fetch_jars, iceberg_jars
from workers.spark.java import find_java_home

_COMPILER = Artifact(
    "org.eclipse.jdt",
    "ecj",
    "3.40.0",
    sha256="05cc22a24e7982970f63a405fc6c820bc80b806f27f3c5a6236fc475f8f7152b",
)
# Of what PySpark brings: Iceberg's runtime needs Hadoop's classes, and a logging interface.
_HADOOP = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "slf4j-api-*.jar")


def java_program(source: Path, main_class: str, folder: Path, *options: str) -> list[str]:
    """Compile a program into the folder, and return the command that runs it.

    The compiler is a jar: a machine with a mere runtime has no `javac`.
    """
    java = find_java_home(folder / "java") / "bin/java"
    classpath, classes = _classpath(), folder / "classes"
    [compiler] = fetch_jars((_COMPILER,))
    compiled = ["-17", "-nowarn", "-d", str(classes), "-cp", classpath]
    subprocess.run([str(java), "-jar", str(compiler), *compiled, str(source)], check=True)
    return [str(java), *options, "-cp", f"{classpath}:{classes}", main_class]


def _classpath() -> str:
    import pyspark

    spark_jars = Path(pyspark.__file__).parent / "jars"
    hadoop = [jar for pattern in _HADOOP for jar in spark_jars.glob(pattern)]
    return ":".join(str(jar) for jar in (*iceberg_jars(), *hadoop))
