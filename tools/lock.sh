#!/bin/sh
# Resolves the dependencies for all releases of Python into lock files with hashes and without the
# address of any package index. Needs an installed .venv.
set -eu
cd "$(dirname "$0")/.."

compile() {
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-header --no-annotate "$@"
}
# What a lock file names already stays, unless it is asked for: make lock OPTIONS=--upgrade
# shellcheck disable=SC2086  # several options
compile ${OPTIONS:-} --extra demo --extra aws --extra hive --extra postgres --extra mariadb --extra gcs --extra adls --group dev pyproject.toml -o requirements.lock
{
    echo '# Over requirements.lock: the newest Spark, for the tests of the Spark side (`make test`).'
    echo 'pyspark==4.3.0' | compile -
} > requirements-spark43.lock.new
mv requirements-spark43.lock.new requirements-spark43.lock
{
    echo '# Over requirements.lock: the oldest Spark, for the tests of what it can do (`make test-servers`).'
    echo 'pyspark==4.0.1' | compile -
} > requirements-spark40.lock.new
mv requirements-spark40.lock.new requirements-spark40.lock
# The image's: of those releases, what the committer runs with, and what its wheel is built with.
compile -c requirements.lock --extra service --extra aws --extra hive --extra postgres --extra mariadb --extra gcs --extra adls pyproject.toml \
    -o requirements-service.lock
echo 'hatchling' | compile -c requirements.lock - -o requirements-build.lock
{
    echo '# Over requirements.lock: pictures, and where the time goes (`make bench`).'
    printf '%s\n' matplotlib py-spy | compile -c requirements.lock -
} > requirements-bench.lock.new
mv requirements-bench.lock.new requirements-bench.lock
{
    echo '# Over requirements.lock: the generator of the documentation site (`make docs-site`).'
    printf '%s\n' zensical mkdocstrings-python | compile -c requirements.lock -
} > requirements-docs.lock.new
mv requirements-docs.lock.new requirements-docs.lock
