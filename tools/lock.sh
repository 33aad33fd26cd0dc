#!/bin/sh
# Resolves the dependencies anew, for all releases of Python, into lock files with hashes and
# without the address of any package index. Needs an installed .venv.
set -eu
cd "$(dirname "$0")/.."

uv=.venv-lock/bin/uv
if [ ! -x "$uv" ]; then
    .venv/bin/python -m venv .venv-lock
    .venv-lock/bin/python -m pip --disable-pip-version-check install --quiet 'uv==0.13.8'
fi

"$uv" lock --quiet --upgrade
"$uv" export --quiet --frozen --no-emit-project --all-groups --no-header -o requirements.lock
echo 'pyspark==4.3.0' | "$uv" pip compile --quiet --universal --python-version 3.11 \
    --generate-hashes --no-header --no-annotate -o requirements-spark43.lock -
