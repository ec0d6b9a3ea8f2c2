// Sends spans, log records and checkpoints with OpenTelemetry's SDK for Go.
// Usage: sender grpc|http ENDPOINT QUERY FOLDER; TRACES traces, then the checkpoints of the last one.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	traces = 50
	part   = 50_000
	asked  = `[{"role":"user","parts":[{"type":"text","content":"Where is order 7? ☃"}]}]`
	called = `[{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"get_order",` +
		`"arguments":{"id":7}}],"finish_reason":"tool_calls"}]`
)

func check(problem error) {
	if problem != nil {
		fmt.Fprintln(os.Stderr, problem)
		os.Exit(1)
	}
}

type sender struct {
	tracer trace.Tracer
	logger log.Logger
	query  string
	folder string
}

func (s sender) event(ctx context.Context, name string, body attribute.Value, more ...attribute.KeyValue) {
	var record log.Record
	record.SetEventName(name)
	record.SetBody(body)
	record.AddAttributes(more...)
	s.logger.Emit(ctx, record)
}

func (s sender) chat(ctx context.Context, input, output int, more ...attribute.KeyValue) (context.Context, trace.Span) {
	ctx, span := s.tracer.Start(ctx, "chat gpt-5.5", trace.WithSpanKind(trace.SpanKindClient))
	span.SetAttributes(
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", "openai"),
		attribute.String("gen_ai.request.model", "gpt-5.5"),
		attribute.Float64("gen_ai.request.temperature", 0.5),
		attribute.Int("gen_ai.usage.input_tokens", input),
		attribute.Int("gen_ai.usage.output_tokens", output),
	)
	span.SetAttributes(more...)
	return ctx, span
}

// run makes the spans and log records of a run: a model call with its messages as attributes, a tool
// call, and a model call with its messages as events.
func (s sender) run() context.Context {
	ctx, root := s.tracer.Start(context.Background(), "invoke_agent shop", trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", "shop")))
	_, span := s.chat(ctx, 15, 18,
		attribute.StringSlice("gen_ai.response.finish_reasons", []string{"tool_calls"}),
		attribute.String("gen_ai.input.messages", asked), attribute.String("gen_ai.output.messages", called))
	span.End()
	_, span = s.tracer.Start(ctx, "execute_tool get_order", trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", "get_order"),
		attribute.String("gen_ai.tool.call.id", "call_1"),
		attribute.String("gen_ai.tool.call.arguments", `{"id":7}`),
		attribute.String("gen_ai.tool.call.result", `{"state":"sent"}`)))
	span.AddEvent("retried", trace.WithAttributes(attribute.Int("attempt", 2), attribute.Bool("late", true)))
	span.End()
	inside, span := s.chat(ctx, 40, 9, attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"}))
	s.event(inside, "gen_ai.user.message", attribute.MapValue(attribute.String("content", "Say it in a word.")))
	s.event(inside, "gen_ai.choice", attribute.MapValue(attribute.Int("index", 0), attribute.String("finish_reason", "stop"),
		attribute.Map("message", attribute.String("role", "assistant"), attribute.String("content", "Sent."))))
	span.End()
	root.End()
	return ctx
}

// checkpoint sends a state twice: with PUT, and as log records in parts.
func (s sender) checkpoint(ctx context.Context, encoding, mediaType string, state []byte) {
	check(os.WriteFile(filepath.Join(s.folder, encoding), state, 0o600))
	where := trace.SpanContextFromContext(ctx)
	url := fmt.Sprintf("%s/v1/checkpoints/%s/state?run=%s&span=%s&label=put", s.query, newId(), where.TraceID(), where.SpanID())
	request, problem := http.NewRequest(http.MethodPut, url, bytes.NewReader(state))
	check(problem)
	request.Header.Set("Content-Type", mediaType)
	answer, problem := http.DefaultClient.Do(request)
	check(problem)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		check(fmt.Errorf("PUT: %s", answer.Status))
	}
	digest, id := sha256.Sum256(state), newId()
	count := (len(state) + part - 1) / part
	for index := range count {
		body := attribute.ByteSliceValue(state[index*part : min(len(state), (index+1)*part)])
		s.event(ctx, "playhead.checkpoint.part", body,
			attribute.String("playhead.checkpoint.id", id),
			attribute.Int("playhead.checkpoint.part.index", index),
			attribute.Int("playhead.checkpoint.part.count", count),
			attribute.String("playhead.checkpoint.sha256", hex.EncodeToString(digest[:])),
			attribute.String("playhead.checkpoint.encoding", encoding),
			attribute.String("playhead.checkpoint.label", "parts"))
	}
}

func newId() string {
	id := make([]byte, 16)
	rand.Read(id)
	return hex.EncodeToString(id)
}

// state is the same in all languages: the receiver stores it once.
func state() []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(struct {
		Step     int                 `json:"step"`
		Messages []map[string]string `json:"messages"`
		Ratio    float64             `json:"ratio"`
		Done     bool                `json:"done"`
		None     any                 `json:"none"`
	}{1, []map[string]string{{"content": strings.Repeat("<ø> & ☃\n", 20_000)}}, 0.5, false, nil}))
	return bytes.TrimSpace(text.Bytes())
}

func main() {
	transport, endpoint, ctx := os.Args[1], os.Args[2], context.Background()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(check))
	var spans sdktrace.SpanExporter
	var logs sdklog.Exporter
	var problem error
	if transport == "grpc" {
		spans, problem = otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(endpoint))
		check(problem)
		logs, problem = otlploggrpc.New(ctx, otlploggrpc.WithEndpointURL(endpoint))
	} else {
		spans, problem = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint+"/v1/traces"))
		check(problem)
		logs, problem = otlploghttp.New(ctx, otlploghttp.WithEndpointURL(endpoint+"/v1/logs"))
	}
	check(problem)
	about := resource.NewSchemaless(attribute.String("service.name", "shop"))
	tracing := sdktrace.NewTracerProvider(sdktrace.WithResource(about),
		sdktrace.WithBatcher(spans))
	logging := sdklog.NewLoggerProvider(sdklog.WithResource(about),
		sdklog.WithProcessor(sdklog.NewBatchProcessor(logs)))
	s := sender{tracing.Tracer("sender"), logging.Logger("sender"), os.Args[3], os.Args[4]}
	for range traces {
		ctx = s.run()
	}
	s.checkpoint(ctx, "json", "application/json", state())
	random := make([]byte, 300_000)
	rand.Read(random)
	s.checkpoint(ctx, "bytes", "application/octet-stream", random)
	check(tracing.Shutdown(context.Background()))
	check(logging.Shutdown(context.Background()))
	fmt.Println(trace.SpanContextFromContext(ctx).TraceID(), trace.SpanContextFromContext(ctx).SpanID())
}
