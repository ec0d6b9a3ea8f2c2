# An agent that is recorded: docker build -f deploy/agent.Dockerfile -t playhead-example .
#
# Of playhead there is only what records. Outside of this checkout it is one line: pip install playhead-agent
FROM python:3.13-slim
WORKDIR /src
COPY semconv semconv
COPY instrumentation instrumentation
COPY exporter exporter
COPY checkpoint checkpoint
COPY agent agent
COPY constraints.txt ./
RUN pip install --no-cache-dir -c constraints.txt ./semconv ./instrumentation ./exporter ./checkpoint ./agent

RUN pip install --no-cache-dir -c constraints.txt openai anthropic httpx
WORKDIR /agent
COPY examples ./
RUN useradd --uid 10001 --create-home agent \
    && install -d -o agent -g agent -m 0700 /spool
# What is not delivered when the container ends waits in the spool: keep it on a volume.
ENV PYTHONUNBUFFERED=1 \
    PLAYHEAD_SPOOL_DIR=/spool \
    PLAYHEAD_ENDPOINT=http://receiver:4318
USER 10001:10001
VOLUME /spool
ENTRYPOINT ["opentelemetry-instrument", "python"]
CMD ["weather_agent.py"]
