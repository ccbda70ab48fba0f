# The image that docker-compose.yml runs the worker and the API from. Not built here: no Docker engine was at hand.
# What was run, outside a container: the four pip commands of the first stage, and the commands that compose starts.

FROM python:3.11-slim AS build
WORKDIR /src
# Every package is checked against its hash in the lock; what the last line installs comes from these wheels alone.
COPY requirements.lock ./
RUN pip wheel --no-cache-dir --no-deps --require-hashes -r requirements.lock -w /wheels
COPY . .
RUN pip install --no-cache-dir --no-index --find-links /wheels hatchling \
    && pip wheel --no-cache-dir --no-deps --no-index --no-build-isolation -w /wheels . \
    && python -m venv /opt/perdure \
    && /opt/perdure/bin/pip install --no-cache-dir --no-index --find-links /wheels 'perdure[postgres]'

FROM python:3.11-slim
# git makes commits, tags and pushes; ssh reaches remotes. The sandbox (bwrap) comes in a wheel.
RUN apt-get update \
    && apt-get install -y --no-install-recommends git openssh-client \
    && rm -rf /var/lib/apt/lists/*
# The uid that owns the mounted repositories, so that their files stay their owner's.
ARG UID=1000
RUN useradd --uid "$UID" --create-home --shell /usr/sbin/nologin perdure \
    && install -d -m 0700 -o "$UID" -g "$UID" /data
COPY --from=build /opt/perdure /opt/perdure
ENV PATH=/opt/perdure/bin:$PATH PYTHONUNBUFFERED=1 PERDURE_DATA=/data
USER perdure
WORKDIR /data
VOLUME /data
