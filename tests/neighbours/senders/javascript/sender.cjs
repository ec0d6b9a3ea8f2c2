// Sends spans, log records and checkpoints with OpenTelemetry's SDK for JavaScript.
// Usage: sender grpc|http ENDPOINT QUERY FOLDER; TRACES traces, then the checkpoints of the last one.
const { createHash, randomBytes } = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const { ROOT_CONTEXT, SpanKind, trace } = require("@opentelemetry/api");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { BatchLogRecordProcessor, LoggerProvider } = require("@opentelemetry/sdk-logs");
const { BatchSpanProcessor, TracerProvider } = require("@opentelemetry/sdk-trace");

const TRACES = 50;
const PART = 50_000;
const ASKED = [{ role: "user", parts: [{ type: "text", content: "Where is order 7? ☃" }] }];
const CALL = { type: "tool_call", id: "call_1", name: "get_order", arguments: { id: 7 } };
const CALLED = [{ role: "assistant", parts: [CALL], finish_reason: "tool_calls" }];
const now = () => performance.timeOrigin + performance.now(); // the SDK's own start has whole milliseconds
const newId = () => randomBytes(16).toString("hex");

// Ends the program when the exporter below it gives something up: the batch processors only log it.
class Checked {
  constructor(below) {
    this.below = below;
  }
  export(items, done) {
    this.below.export(items, (result) => {
      if (result.code !== 0) {
        process.stderr.write(`${result.error}\n`);
        process.exit(1);
      }
      done(result);
    });
  }
  forceFlush() {
    return this.below.forceFlush();
  }
  shutdown() {
    return this.below.shutdown();
  }
}

class Sender {
  constructor(tracer, logger, query, folder) {
    Object.assign(this, { tracer, logger, query, folder });
  }

  event(context, eventName, body, attributes = {}) {
    this.logger.emit({ context, eventName, body, attributes });
  }

  chat(parent, input, output, reason, more = {}) {
    const attributes = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "gpt-5.5",
      "gen_ai.request.temperature": 0.5,
      "gen_ai.response.finish_reasons": [reason],
      "gen_ai.usage.input_tokens": input,
      "gen_ai.usage.output_tokens": output,
      ...more,
    };
    return this.tracer.startSpan("chat gpt-5.5", { kind: SpanKind.CLIENT, startTime: now(), attributes }, parent);
  }

  // Makes the spans and log records of a run: a model call with its messages as attributes, a tool
  // call, and a model call with its messages as events.
  run() {
    const agent = { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop" };
    const root = this.tracer.startSpan("invoke_agent shop", { startTime: now(), attributes: agent }, ROOT_CONTEXT);
    const inside = trace.setSpan(ROOT_CONTEXT, root);
    const messages = { "gen_ai.input.messages": JSON.stringify(ASKED), "gen_ai.output.messages": JSON.stringify(CALLED) };
    this.chat(inside, 15, 18, "tool_calls", messages).end();
    const attributes = {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "get_order",
      "gen_ai.tool.call.id": "call_1",
      "gen_ai.tool.call.arguments": JSON.stringify({ id: 7 }),
      "gen_ai.tool.call.result": JSON.stringify({ state: "sent" }),
    };
    const tool = this.tracer.startSpan("execute_tool get_order", { startTime: now(), attributes }, inside);
    tool.addEvent("retried", { attempt: 2, late: true });
    tool.end();
    const span = this.chat(inside, 40, 9, "stop");
    const call = trace.setSpan(inside, span);
    this.event(call, "gen_ai.user.message", { content: "Say it in a word." });
    const message = { role: "assistant", content: "Sent." };
    this.event(call, "gen_ai.choice", { index: 0, finish_reason: "stop", message });
    span.end();
    root.end();
    return inside;
  }

  // Sends a state twice: with PUT, and as log records in parts.
  async checkpoint(context, encoding, mediaType, state) {
    fs.writeFileSync(path.join(this.folder, encoding), state);
    const { traceId, spanId } = trace.getSpanContext(context);
    const url = `${this.query}/v1/checkpoints/${newId()}/state?run=${traceId}&span=${spanId}&label=put`;
    const answer = await fetch(url, { method: "PUT", body: state, headers: { "content-type": mediaType } });
    if (!answer.ok) throw new Error(await answer.text());
    const about = {
      "playhead.checkpoint.id": newId(),
      "playhead.checkpoint.sha256": createHash("sha256").update(state).digest("hex"),
      "playhead.checkpoint.encoding": encoding,
      "playhead.checkpoint.label": "parts",
      "playhead.checkpoint.part.count": Math.ceil(state.length / PART),
    };
    for (let index = 0; index * PART < state.length; index++) {
      const body = state.subarray(index * PART, (index + 1) * PART);
      this.event(context, "playhead.checkpoint.part", body, { ...about, "playhead.checkpoint.part.index": index });
    }
  }
}

// The same in all languages: the receiver stores it once.
function state() {
  const messages = [{ content: "<ø> & ☃\n".repeat(20_000) }];
  return Buffer.from(JSON.stringify({ step: 1, messages, ratio: 0.5, done: false, none: null }));
}

function exporters(transport, endpoint) {
  const kind = transport === "grpc" ? "grpc" : "proto";
  const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${kind}`);
  const { OTLPLogExporter } = require(`@opentelemetry/exporter-logs-otlp-${kind}`);
  const urls = kind === "grpc" ? [endpoint, endpoint] : [`${endpoint}/v1/traces`, `${endpoint}/v1/logs`];
  return [new OTLPTraceExporter({ url: urls[0] }), new OTLPLogExporter({ url: urls[1] })];
}

async function main(transport, endpoint, query, folder) {
  const resource = resourceFromAttributes({ "service.name": "shop" });
  const [spans, logs] = exporters(transport, endpoint).map((one) => new Checked(one));
  const tracing = new TracerProvider({ resource, spanProcessors: [new BatchSpanProcessor({ exporter: spans })] });
  const logging = new LoggerProvider({ resource, processors: [new BatchLogRecordProcessor({ exporter: logs })] });
  const sender = new Sender(tracing.getTracer("sender"), logging.getLogger("sender"), query, folder);
  let last;
  for (let count = 0; count < TRACES; count++) last = sender.run();
  await sender.checkpoint(last, "json", "application/json", state());
  await sender.checkpoint(last, "bytes", "application/octet-stream", randomBytes(300_000));
  await tracing.shutdown();
  await logging.shutdown();
  const { traceId, spanId } = trace.getSpanContext(last);
  process.stdout.write(`${traceId} ${spanId}\n`);
}

main(...process.argv.slice(2));
