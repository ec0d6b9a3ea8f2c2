//! Sends spans, log records and checkpoints with OpenTelemetry's SDK for Rust.
//! Usage: sender grpc|http ENDPOINT QUERY FOLDER; TRACES traces, then the checkpoints of the last one.

use std::collections::HashMap;
use std::error::Error;
use std::io::Read;

use opentelemetry::logs::{AnyValue, LogRecord, Logger, LoggerProvider};
use opentelemetry::trace::{Span, SpanContext, SpanKind, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Array, Context, Key, KeyValue, StringValue, Value};
use opentelemetry_otlp::{LogExporter, SpanExporter, WithExportConfig};
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use opentelemetry_sdk::Resource;
use sha2::{Digest, Sha256};

const TRACES: usize = 50;
const PART: usize = 50_000;
const ASKED: &str = r#"[{"role":"user","parts":[{"type":"text","content":"Where is order 7? ☃"}]}]"#;
const CALLED: &str = r#"[{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"get_order","arguments":{"id":7}}],"finish_reason":"tool_calls"}]"#;

type Done = Result<(), Box<dyn Error>>;

struct Sender {
    tracer: SdkTracer,
    logger: SdkLogger,
    query: String,
    folder: String,
}

fn map<const N: usize>(entries: [(&'static str, AnyValue); N]) -> AnyValue {
    let entries = entries.map(|(key, value)| (Key::new(key), value));
    AnyValue::Map(Box::new(HashMap::from(entries)))
}

impl Sender {
    fn event(&self, at: &SpanContext, name: &'static str, body: AnyValue, more: Vec<(&'static str, AnyValue)>) {
        let mut record = self.logger.create_log_record();
        record.set_event_name(name);
        record.set_body(body);
        record.add_attributes(more);
        record.set_trace_context(at.trace_id(), at.span_id(), Some(at.trace_flags()));
        self.logger.emit(record);
    }

    fn chat(&self, parent: &Context, input: i64, output: i64, reason: &'static str, more: Vec<KeyValue>) -> impl Span {
        let builder = self.tracer.span_builder("chat gpt-5.5").with_kind(SpanKind::Client);
        let mut span = self.tracer.build_with_context(builder, parent);
        let reasons = Value::Array(Array::String(vec![StringValue::from(reason)]));
        span.set_attributes([
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", "openai"),
            KeyValue::new("gen_ai.request.model", "gpt-5.5"),
            KeyValue::new("gen_ai.request.temperature", 0.5),
            KeyValue::new("gen_ai.response.finish_reasons", reasons),
            KeyValue::new("gen_ai.usage.input_tokens", input),
            KeyValue::new("gen_ai.usage.output_tokens", output),
        ]);
        span.set_attributes(more);
        span
    }

    /// Makes the spans and log records of a run: a model call with its messages as attributes, a tool
    /// call, and a model call with its messages as events.
    fn run(&self) -> SpanContext {
        let mut root = self.tracer.start_with_context("invoke_agent shop", &Context::new());
        root.set_attribute(KeyValue::new("gen_ai.operation.name", "invoke_agent"));
        root.set_attribute(KeyValue::new("gen_ai.agent.name", "shop"));
        let within = Context::new().with_remote_span_context(root.span_context().clone());
        let messages = vec![
            KeyValue::new("gen_ai.input.messages", ASKED),
            KeyValue::new("gen_ai.output.messages", CALLED),
        ];
        self.chat(&within, 15, 18, "tool_calls", messages).end();
        let mut tool = self.tracer.start_with_context("execute_tool get_order", &within);
        tool.set_attributes([
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", "get_order"),
            KeyValue::new("gen_ai.tool.call.id", "call_1"),
            KeyValue::new("gen_ai.tool.call.arguments", r#"{"id":7}"#),
            KeyValue::new("gen_ai.tool.call.result", r#"{"state":"sent"}"#),
        ]);
        tool.add_event("retried", vec![KeyValue::new("attempt", 2), KeyValue::new("late", true)]);
        tool.end();
        let mut span = self.chat(&within, 40, 9, "stop", vec![]);
        let at = span.span_context().clone();
        self.event(&at, "gen_ai.user.message", map([("content", "Say it in a word.".into())]), vec![]);
        let message = map([("role", "assistant".into()), ("content", "Sent.".into())]);
        let choice = map([("index", 0.into()), ("finish_reason", "stop".into()), ("message", message)]);
        self.event(&at, "gen_ai.choice", choice, vec![]);
        span.end();
        root.end();
        root.span_context().clone()
    }

    /// Sends a state twice: with PUT, and as log records in parts.
    fn checkpoint(&self, at: &SpanContext, encoding: &'static str, media_type: &str, state: Vec<u8>) -> Done {
        std::fs::write(format!("{}/{encoding}", self.folder), &state)?;
        let (run, span) = (at.trace_id(), at.span_id());
        let url = format!("{}/v1/checkpoints/{}/state?run={run}&span={span}&label=put", self.query, new_id()?);
        let request = reqwest::blocking::Client::new().put(url).header("content-type", media_type);
        request.body(state.clone()).send()?.error_for_status()?;
        let (id, digest) = (new_id()?, hex(&Sha256::digest(&state)));
        let parts: Vec<_> = state.chunks(PART).collect();
        for (index, part) in parts.iter().enumerate() {
            let about = vec![
                ("playhead.checkpoint.id", id.clone().into()),
                ("playhead.checkpoint.part.index", (index as i64).into()),
                ("playhead.checkpoint.part.count", (parts.len() as i64).into()),
                ("playhead.checkpoint.sha256", digest.clone().into()),
                ("playhead.checkpoint.encoding", encoding.into()),
                ("playhead.checkpoint.label", "parts".into()),
            ];
            self.event(at, "playhead.checkpoint.part", AnyValue::Bytes(Box::new(part.to_vec())), about);
        }
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn random(size: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; size];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn new_id() -> std::io::Result<String> {
    Ok(hex(&random(16)?))
}

/// The same in all languages: the receiver stores it once.
fn state() -> String {
    let content = r"<ø> & ☃\n".repeat(20_000);
    format!(r#"{{"step":1,"messages":[{{"content":"{content}"}}],"ratio":0.5,"done":false,"none":null}}"#)
}

fn main() -> Done {
    let words: Vec<String> = std::env::args().collect();
    let [_, transport, endpoint, query, folder] = &words[..] else {
        return Err("usage: sender grpc|http ENDPOINT QUERY FOLDER".into());
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let (spans, logs) = if transport == "grpc" {
        let _inside = runtime.enter();
        (
            SpanExporter::builder().with_tonic().with_endpoint(endpoint).build()?,
            LogExporter::builder().with_tonic().with_endpoint(endpoint).build()?,
        )
    } else {
        (
            SpanExporter::builder().with_http().with_endpoint(format!("{endpoint}/v1/traces")).build()?,
            LogExporter::builder().with_http().with_endpoint(format!("{endpoint}/v1/logs")).build()?,
        )
    };
    let about = Resource::builder_empty().with_service_name("shop").build();
    let tracing = SdkTracerProvider::builder().with_resource(about.clone()).with_batch_exporter(spans).build();
    let logging = SdkLoggerProvider::builder().with_resource(about).with_batch_exporter(logs).build();
    let tracer = tracing.tracer("sender");
    let sender = Sender { tracer, logger: logging.logger("sender"), query: query.clone(), folder: folder.clone() };
    let contexts: Vec<_> = (0..TRACES).map(|_| sender.run()).collect();
    let last = &contexts[TRACES - 1];
    sender.checkpoint(last, "json", "application/json", state().into_bytes())?;
    sender.checkpoint(last, "bytes", "application/octet-stream", random(300_000)?)?;
    tracing.shutdown()?;
    logging.shutdown()?;
    println!("{} {}", last.trace_id(), last.span_id());
    Ok(())
}
