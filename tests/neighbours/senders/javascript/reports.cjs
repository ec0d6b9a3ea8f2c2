// Reports what a program reports, with OpenTelemetry's SDK for JavaScript: in three ways, in a trace each.
// Usage: reports ENDPOINT FILE; FILE has the fields of each kind of report, as JSON. Prints the trace ids.
const fs = require("node:fs");
const { ROOT_CONTEXT, trace } = require("@opentelemetry/api");
const { OTLPLogExporter } = require("@opentelemetry/exporter-logs-otlp-proto");
const { OTLPTraceExporter } = require("@opentelemetry/exporter-trace-otlp-proto");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { BatchLogRecordProcessor, LoggerProvider } = require("@opentelemetry/sdk-logs");
const { BatchSpanProcessor, TracerProvider } = require("@opentelemetry/sdk-trace");

// The attributes of a report: the name of its event stands before the name of each field.
function attributesOf(kind, fields) {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [`playhead.${kind}.${name}`, value]));
}

async function main(endpoint, file) {
  const reports = Object.entries(JSON.parse(fs.readFileSync(file, "utf8")));
  const resource = resourceFromAttributes({ "service.name": "js" });
  const spans = new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url: `${endpoint}/v1/traces` }) });
  const records = new BatchLogRecordProcessor({ exporter: new OTLPLogExporter({ url: `${endpoint}/v1/logs` }) });
  const tracing = new TracerProvider({ resource, spanProcessors: [spans] });
  const logging = new LoggerProvider({ resource, processors: [records] });
  const logger = logging.getLogger("planner");
  const ways = [
    (span, context, kind, fields) => span.addEvent(`playhead.${kind}`, attributesOf(kind, fields)),
    (span, context, kind, fields) =>
      logger.emit({ context, eventName: `playhead.${kind}`, attributes: attributesOf(kind, fields) }),
    (span, context, kind, fields) => logger.emit({ context, eventName: `playhead.${kind}`, body: fields }),
  ];
  for (const report of ways) {
    const attributes = { "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5.5" };
    const span = tracing.getTracer("planner").startSpan("chat gpt-5.5", { attributes }, ROOT_CONTEXT);
    for (const [kind, fields] of reports) report(span, trace.setSpan(ROOT_CONTEXT, span), kind, fields);
    span.end();
    process.stdout.write(`${span.spanContext().traceId}\n`);
  }
  await tracing.shutdown();
  await logging.shutdown();
}

main(...process.argv.slice(2));
