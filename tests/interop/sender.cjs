// The same as sender.py, with OpenTelemetry's SDK and exporters for JavaScript.
// TRANSPORT: grpc, proto or json, `+gzip` behind it.
const fs = require("node:fs");
const readline = require("node:readline");
const { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, createTraceState, trace } = require("@opentelemetry/api");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { BatchSpanProcessor, TracerProvider } = require("@opentelemetry/sdk-trace");

const SPANS_PER_TRACE = 50;
const FAR = {
  traceId: "0000000000000000000000000000face",
  spanId: "000000000000cafe",
  traceFlags: TraceFlags.SAMPLED,
  isRemote: true,
  traceState: createTraceState("vendor=a:1"),
};

function exporterOf(transport, endpoint) {
  const [kind, compression] = transport.split("+");
  const options = { compression: compression ?? "none", timeoutMillis: 60_000, concurrencyLimit: 100 };
  if (kind === "grpc") {
    const { OTLPTraceExporter } = require("@opentelemetry/exporter-trace-otlp-grpc");
    return new OTLPTraceExporter({ ...options, url: `http://${endpoint}` });
  }
  const name = kind === "proto" ? "exporter-trace-otlp-proto" : "exporter-trace-otlp-http";
  const { OTLPTraceExporter } = require(`@opentelemetry/${name}`);
  return new OTLPTraceExporter({ ...options, url: `${endpoint}/v1/traces` });
}

// Counts what the exporter below it gives up.
class Counted {
  constructor(below) {
    this.below = below;
    this.failed = 0;
  }
  export(spans, done) {
    this.below.export(spans, (result) => {
      if (result.code !== 0) {
        this.failed += 1;
        process.stderr.write(`${result.error}\n`);
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

// Writes down what was made.
class Kept {
  constructor(path) {
    this.file = fs.openSync(path, "w");
  }
  onStart() {}
  onEnd(span) {
    fs.writeSync(this.file, `${plainSpan(span)}\n`);
  }
  async forceFlush() {}
  async shutdown() {}
}

function plainSpan(span) {
  const context = span.spanContext();
  const scope = span.instrumentationScope;
  const times = [nanos(span.startTime), nanos(span.endTime)];
  const events = span.events.map((one) => [one.name, nanos(one.time), plain(one.attributes ?? {})]);
  const links = span.links.map((one) => [
    one.context.traceId,
    one.context.spanId,
    one.context.traceState?.serialize() ?? "",
    plain(one.attributes ?? {}),
  ]);
  const said = {
    trace: context.traceId,
    span: context.spanId,
    parent: span.parentSpanContext?.spanId ?? "",
    state: context.traceState?.serialize() ?? "",
    name: span.name,
    kind: span.kind + 1,
    times,
    status: [span.status.code, span.status.message ?? ""],
    attributes: plain(span.attributes),
    events,
    links,
    resource: plain(span.resource.attributes),
    scope: [scope.name, scope.version ?? "", plain(scope.attributes ?? {})],
  };
  return JSON.stringify(said, exactly);
}

function exactly(_, value) {
  return typeof value === "bigint" || Number.isInteger(value) ? JSON.rawJSON(`${BigInt(value)}`) : value;
}

function nanos([seconds, rest]) {
  return BigInt(seconds) * 1_000_000_000n + BigInt(rest);
}

// A string of JavaScript may hold half of a character; on the wire that is U+FFFD.
function plain(value) {
  if (typeof value === "string") return value.toWellFormed();
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString("hex") };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
  }
  return value;
}

function makeTrace(provider, number) {
  const tracers = [provider.getTracer("agent.one", "1.2.3"), provider.getTracer("agent.two")];
  const traceId = ((BigInt(number) << 64n) + 0xabcn).toString(16).padStart(32, "0");
  const above = { ...FAR, traceId, spanId: number.toString(16).padStart(16, "0") };
  const history = [];
  const outside = trace.setSpanContext(ROOT_CONTEXT, above);
  const root = tracers[0].startSpan(`invoke_agent №${number}`, { kind: SpanKind.SERVER }, outside);
  const inside = trace.setSpan(outside, root);
  for (let step = 1; step < SPANS_PER_TRACE; step++) {
    history.push({ role: "user", parts: [{ type: "text", content: `ask ${step}: ☃ 🛰 é`.repeat(5) }] });
    const attributes = {
      "gen_ai.operation.name": "chat",
      "gen_ai.input.messages": JSON.stringify(history),
      "gen_ai.usage.input_tokens": step,
      text: "zero \0, quote \", slash \\, line\n, far \u{1f469}\u200d\u{1f680}, ﷽",
      "cut in two": "🛰".slice(0, 1),
      empty: "",
      greatest: Number.MAX_SAFE_INTEGER,
      least: -(2 ** 63),
      "past int64": 1e20,
      share: 0.1 + step,
      huge: 1.5e300,
      none: Number.NaN,
      yes: true,
      list: [`ü${step}`, "", "b"],
      numbers: [1, -2, 2 ** 52],
      halves: [0.5, -0.25],
      nothing: [],
      bytes: new Uint8Array([0, 255, 254]),
      map: { a: { b: [1, "two", null, 3.5] }, "": false },
    };
    const links = [{ context: FAR, attributes: { why: "cause", step } }];
    const span = tracers[step % 2].startSpan(`chat ${step}`, { kind: step % 5, attributes, links }, inside);
    span.addEvent("gen_ai.choice", { index: step, say: ["é", "🛰"] });
    span.addEvent("plain");
    if (step % 7 === 0) {
      span.recordException(new Error(`wrong ☃ ${step}`));
      span.setStatus({ code: SpanStatusCode.ERROR, message: `failed ☃ ${step}` });
    } else if (step % 3 === 0) span.setStatus({ code: SpanStatusCode.OK });
    span.end();
  }
  root.end();
}

async function main(transport, endpoint, path) {
  const resource = resourceFromAttributes({ "service.name": "interop ☃", "service.version": "7", numbers: [1, 2, 3] });
  const counted = new Counted(exporterOf(transport, endpoint));
  const processor = new BatchSpanProcessor({ exporter: counted, maxQueueSize: 100_000, exportTimeoutMillis: 120_000 });
  const provider = new TracerProvider({ resource, spanProcessors: [new Kept(path), processor] });
  let made = 0;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    for (let wanted = Number(line); wanted > 0; wanted--) makeTrace(provider, ++made);
    let flushed = true;
    await provider.forceFlush({ timeoutMillis: 120_000 }).catch(() => (flushed = false));
    process.stdout.write(`${JSON.stringify({ failed: counted.failed, flushed })}\n`);
  }
  await provider.shutdown();
}

main(...process.argv.slice(2));
