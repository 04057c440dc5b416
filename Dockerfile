# One image for every job: the reconciler, and the node agent. linux/amd64 and linux/arm64.
FROM python:3.11-slim AS build
WORKDIR /build

# No pip in what is shipped.
RUN python -m venv --without-pip /app

# Wheels only, each by its hash: nothing is compiled, and nothing arrives that the lock does not name.
# requirements-aws.lock is the same and boto3, which only who asks AWS needs.
ARG LOCK=requirements.lock
COPY ${LOCK} requirements.lock
RUN pip --python /app/bin/python install --no-cache-dir --no-compile --no-deps --require-hashes \
      --only-binary :all: -r requirements.lock

COPY pyproject.toml README.md LICENSE ./
COPY reconciler reconciler
COPY jobs jobs
RUN pip --python /app/bin/python install --no-cache-dir --no-compile --no-deps .

# The asynchronous copy of the Kubernetes client and everybody's tests are half of the image, and never loaded.
# Bytecode is made here, because the root file system is read-only there.
RUN rm -rf /app/lib/python3.11/site-packages/kubernetes/aio \
 && find /app -name '*_test.py' -delete \
 && /app/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /app/lib

FROM python:3.11-slim
COPY --from=build /app /app
ENV PATH=/app/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["reconciler"]
