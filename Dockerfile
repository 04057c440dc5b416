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
RUN pip wheel --no-cache-dir --no-deps --no-index --no-build-isolation --wheel-dir dist . \
 && pip --python /app/bin/python install --no-cache-dir --no-compile --no-deps --no-index dist/*.whl

# The asynchronous copy of the Kubernetes client and everybody's tests are half of the image, and never loaded.
RUN rm -rf /app/lib/python3.11/site-packages/kubernetes/aio \
 && find /app -name '*_test.py' -delete

# Python, the program and their libraries, without a shell, pip or any other program.
COPY image/root.py ./
RUN python root.py --app /app --to /image

FROM scratch
COPY --from=build /image /
ENV PATH=/app/bin \
    HOME=/ \
    LANG=C.UTF-8 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["reconciler"]
