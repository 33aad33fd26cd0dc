# The committer as an image: `docker build --tag frazil .`
# Everything comes from lock files with hashes. tests/deploy/test_image.py runs these very commands.

ARG BASE=docker.io/library/python:3.13-slim-bookworm

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
RUN python -m venv --without-pip /opt/frazil && python -m venv /opt/build
# What changes seldom comes first, so that a new release re-uses these layers.
COPY requirements-service.lock requirements-build.lock ./
RUN /opt/build/bin/pip install --no-cache-dir --only-binary=:all: --require-hashes \
        -r requirements-build.lock \
    && /opt/build/bin/pip --python /opt/frazil install --no-cache-dir --no-compile \
        --only-binary=:all: --require-hashes -r requirements-service.lock
# The client describes four hundred services; the committer calls four, and signs in by the others.
RUN cd /opt/frazil/lib/python3*/site-packages/botocore/data \
    && find . -mindepth 1 -maxdepth 1 -type d \
        ! -name dynamodb ! -name glue ! -name s3 ! -name s3tables ! -name sts ! -name sso \
        ! -name sso-oidc ! -name signin \
        -exec rm -r {} +
COPY pyproject.toml README.md LICENSE ./
COPY committer committer
COPY workers workers
COPY pyspark_frazil pyspark_frazil
COPY frazil frazil
RUN /opt/build/bin/hatchling build --target wheel --directory /opt/build/wheels \
    && /opt/build/bin/pip --python /opt/frazil install --no-cache-dir --no-compile --no-deps \
        /opt/build/wheels/*.whl \
    && python -m compileall -q --invalidation-mode unchecked-hash /opt/frazil/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="frazil" \
      org.opencontainers.image.description="Group commits for Apache Iceberg tables" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
COPY --from=build /opt/frazil /opt/frazil
# The root file system may be read-only: only the home and /tmp are written to, and with catalog,
# inbox and queue elsewhere not even they. HOME is for `~/.aws` and the like.
RUN install -d -o 65532 -g 65532 -m 0700 /var/lib/frazil
ENV PATH=/opt/frazil/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/var/lib/frazil \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    FRAZIL_HOME=/var/lib/frazil \
    FRAZIL_SERVICE__HTTP_HOST=0.0.0.0 \
    FRAZIL_SERVICE__LOG_FORMAT=json
WORKDIR /var/lib/frazil
USER 65532:65532
EXPOSE 8181
# No HEALTHCHECK: an orchestrator asks /livez and /readyz itself.
ENTRYPOINT ["frazil"]
CMD ["serve"]
