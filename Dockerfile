# One image for every job: the reconciler, and the node agent. linux/amd64 and linux/arm64.
# PYTHON is an image of Python 3.11 on Debian with its digest, see docs/install.md. It has no default: a tag may
# mean other bytes tomorrow, and a digest that is written here would keep its security holes until somebody looks.
ARG PYTHON
FROM ${PYTHON} AS build
ARG PYTHON
RUN case "${PYTHON}" in \
      *@sha256:????????????????????????????????????????????????????????????????) ;; \
      *) echo "PYTHON must be NAME@sha256:DIGEST, see docs/install.md" >&2; exit 1 ;; \
    esac
WORKDIR /build

# No pip in what is shipped.
RUN python -m venv --without-pip /app

# Wheels only, each by its hash: nothing is compiled, and nothing arrives that the lock does not name.
# requirements-aws.lock, -esx.lock, -notify.lock, -openstack.lock and -otel.lock have one extra each.
ARG LOCK=requirements.lock
COPY ${LOCK} requirements.lock
RUN pip --python /app/bin/python install --no-cache-dir --no-compile --no-deps --require-hashes \
      --only-binary :all: -r requirements.lock

# The build tools too. They stay in this stage.
COPY requirements-build.lock ./
RUN pip install --no-cache-dir --no-compile --no-deps --require-hashes --only-binary :all: \
      -r requirements-build.lock

COPY pyproject.toml README.md LICENSE ./
COPY reconciler reconciler
COPY jobs jobs
# The commit that `reconciler --version` says.
ARG REVISION=""
RUN case "${REVISION}" in \
      *[!0-9a-f]*) echo "REVISION must be a commit, as git rev-parse HEAD prints it" >&2; exit 1 ;; \
    esac \
 && sed -i "s/^__commit__ = \"\"$/__commit__ = \"${REVISION}\"/" reconciler/__init__.py \
 && grep -qx "__commit__ = \"${REVISION}\"" reconciler/__init__.py
RUN pip wheel --no-cache-dir --no-deps --no-index --no-build-isolation --wheel-dir dist . \
 && pip --python /app/bin/python install --no-cache-dir --no-compile --no-deps --no-index dist/*.whl

# Python, the program and what they load, as bytecode too: no shell, no pip and no other program.
COPY image image
RUN python -m image.root --app /app --to /image

FROM scratch
COPY --from=build /image /
# What is not given stays empty, or as it is here. All of it comes from the commit and its repository, so the
# same commit has the same labels.
ARG VERSION=0.1.0
ARG REVISION=""
ARG CREATED=""
ARG SOURCE=https://github.com/node-maintenance/node-maintenance-reconciler
LABEL org.opencontainers.image.title="node-maintenance-reconciler" \
      org.opencontainers.image.description="Keeps workloads out of the way of platform maintenance on Kubernetes nodes, first of all on AKS" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}"
ENV PATH=/app/bin \
    HOME=/ \
    LANG=C.UTF-8 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["reconciler"]
