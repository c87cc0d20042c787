# syntax=docker/dockerfile:1
# Two images from one static binary.
#   docker build --target slim  .   the binary alone: COPY --from=... /sprag /usr/local/bin/
#   docker build --target agent .   git, certificates and a user of its own, to run sprag in
# With `--build-context build=DIR` the binary DIR/sprag is taken and nothing is compiled.
# scripts/test-container builds both and runs them.

FROM docker.io/library/rust:1.95-slim-trixie AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends musl-tools \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN binary=$(scripts/build-static) && cp "$binary" /sprag

FROM scratch AS slim
COPY --from=build /sprag /sprag
USER 65532:65532
ENTRYPOINT ["/sprag"]

FROM docker.io/library/debian:trixie-slim AS agent
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git openssh-client \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1001 --shell /bin/sh sprag
COPY --from=build /sprag /usr/local/bin/sprag
# The uid of the runner on GitHub's hosted machines, so that a mounted workspace is its own.
USER 1001:1001
WORKDIR /workspace
ENTRYPOINT ["/usr/local/bin/sprag"]
