# A server of a model or an index; docs/deploy.md has what to run.
#   docker build -t isoglot:cuda .                                         NVIDIA GPUs: torch's usual wheels contain CUDA
#   docker build -t isoglot --build-arg TORCH_INDEX=URL-OF-TORCHS-CPU-INDEX .   CPU, a tenth of the size
FROM python:3.12-slim AS base
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

FROM base AS installed
ARG TORCH_INDEX=""
COPY constraints.txt /src/
# Only the version of torch itself: torch's own index has few versions of what torch needs; the next step pins those.
RUN python -m venv /opt/isoglot && \
    /opt/isoglot/bin/pip install ${TORCH_INDEX:+--index-url ${TORCH_INDEX}} "$(grep ^torch== /src/constraints.txt)"
COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN /opt/isoglot/bin/pip install --constraint /src/constraints.txt "/src[serve,models,faiss]"

FROM base
COPY --from=installed /opt/isoglot /opt/isoglot
# The cache holds unpacked models: mount a volume there to keep them.
RUN useradd --create-home isoglot && install -d -o isoglot /cache
USER isoglot
ENV PATH=/opt/isoglot/bin:$PATH ISOGLOT_CACHE=/cache ISOGLOT_SERVE_HOST=0.0.0.0 ISOGLOT_SERVE_PORT=8765
VOLUME /cache
EXPOSE 8765
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ['ISOGLOT_SERVE_PORT']}/health\", timeout=5)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["isoglot"]
CMD ["serve"]
