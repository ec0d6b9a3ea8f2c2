# The receiver with the command line: docker build -f deploy/receiver.Dockerfile -t playhead .
#
# The command line is there for tokens, lists and backups: docker exec … playhead token create agents --scope ingest
FROM python:3.13-slim AS build
WORKDIR /src
COPY semconv semconv
COPY instrumentation instrumentation
COPY exporter exporter
COPY checkpoint checkpoint
COPY replay replay
COPY analysis analysis
COPY receiver receiver
COPY examples examples
COPY cli cli
COPY constraints.txt ./
RUN python -m venv /opt/playhead \
    && /opt/playhead/bin/pip install --no-cache-dir -c constraints.txt \
        ./semconv ./instrumentation ./exporter ./checkpoint ./replay ./analysis \
        "./receiver[grpc,postgres,s3]" ./cli

FROM python:3.13-slim
COPY --from=build /opt/playhead /opt/playhead
RUN useradd --uid 10001 --create-home playhead \
    && install -d -o playhead -g playhead -m 0700 /data
ENV PATH=/opt/playhead/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PLAYHEAD_DATA_DIR=/data
USER 10001:10001
VOLUME /data
EXPOSE 4317 4318 4319
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD \
    ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:4319/ready', timeout=3)"]
ENTRYPOINT ["playhead"]
# From elsewhere a token is needed: PLAYHEAD_TOKEN, or one that `playhead token create` has made in /data.
CMD ["up", "--host", "0.0.0.0"]
