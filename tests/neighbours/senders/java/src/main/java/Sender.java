import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.KeyValue;
import io.opentelemetry.api.common.Value;
import io.opentelemetry.api.logs.Logger;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.exporter.otlp.http.logs.OtlpHttpLogRecordExporter;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.exporter.otlp.logs.OtlpGrpcLogRecordExporter;
import io.opentelemetry.exporter.otlp.trace.OtlpGrpcSpanExporter;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.logs.SdkLoggerProvider;
import io.opentelemetry.sdk.logs.export.BatchLogRecordProcessor;
import io.opentelemetry.sdk.logs.export.LogRecordExporter;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Sends spans, log records and checkpoints with OpenTelemetry's SDK for Java.
 *
 * <p>Usage: Sender grpc|http ENDPOINT QUERY FOLDER; TRACES traces, then the checkpoints of the last one.
 */
final class Sender {
  private static final int TRACES = 50;
  private static final int PART = 50_000;
  private static final String ASKED =
      "[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"Where is order 7? ☃\"}]}]";
  private static final String CALLED =
      "[{\"role\":\"assistant\",\"parts\":[{\"type\":\"tool_call\",\"id\":\"call_1\",\"name\":\"get_order\","
          + "\"arguments\":{\"id\":7}}],\"finish_reason\":\"tool_calls\"}]";
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Tracer tracer;
  private final Logger logger;
  private final String query;
  private final Path folder;

  private Sender(Tracer tracer, Logger logger, String query, Path folder) {
    this.tracer = tracer;
    this.logger = logger;
    this.query = query;
    this.folder = folder;
  }

  private void event(Context at, String name, Value<?> body, Attributes more) {
    logger.logRecordBuilder().setContext(at).setEventName(name).setBody(body).setAllAttributes(more).emit();
  }

  private SpanBuilder chat(Context parent, long input, long output, String reason) {
    return tracer
        .spanBuilder("chat gpt-5.5")
        .setParent(parent)
        .setSpanKind(SpanKind.CLIENT)
        .setAttribute("gen_ai.operation.name", "chat")
        .setAttribute("gen_ai.provider.name", "openai")
        .setAttribute("gen_ai.request.model", "gpt-5.5")
        .setAttribute("gen_ai.request.temperature", 0.5)
        .setAttribute(AttributeKey.stringArrayKey("gen_ai.response.finish_reasons"), List.of(reason))
        .setAttribute("gen_ai.usage.input_tokens", input)
        .setAttribute("gen_ai.usage.output_tokens", output);
  }

  /**
   * Makes the spans and log records of a run: a model call with its messages as attributes, a tool call,
   * and a model call with its messages as events.
   */
  private Context run() {
    Span root =
        tracer
            .spanBuilder("invoke_agent shop")
            .setNoParent()
            .setAttribute("gen_ai.operation.name", "invoke_agent")
            .setAttribute("gen_ai.agent.name", "shop")
            .startSpan();
    Context within = Context.root().with(root);
    chat(within, 15, 18, "tool_calls")
        .setAttribute("gen_ai.input.messages", ASKED)
        .setAttribute("gen_ai.output.messages", CALLED)
        .startSpan()
        .end();
    Span tool =
        tracer
            .spanBuilder("execute_tool get_order")
            .setParent(within)
            .setAttribute("gen_ai.operation.name", "execute_tool")
            .setAttribute("gen_ai.tool.name", "get_order")
            .setAttribute("gen_ai.tool.call.id", "call_1")
            .setAttribute("gen_ai.tool.call.arguments", "{\"id\":7}")
            .setAttribute("gen_ai.tool.call.result", "{\"state\":\"sent\"}")
            .startSpan();
    tool.addEvent("retried", Attributes.builder().put("attempt", 2).put("late", true).build());
    tool.end();
    Span span = chat(within, 40, 9, "stop").startSpan();
    Context inside = within.with(span);
    Value<?> asked = Value.of(KeyValue.of("content", Value.of("Say it in a word.")));
    event(inside, "gen_ai.user.message", asked, Attributes.empty());
    Value<?> choice =
        Value.of(
            KeyValue.of("index", Value.of(0)),
            KeyValue.of("finish_reason", Value.of("stop")),
            KeyValue.of(
                "message",
                Value.of(
                    KeyValue.of("role", Value.of("assistant")),
                    KeyValue.of("content", Value.of("Sent.")))));
    event(inside, "gen_ai.choice", choice, Attributes.empty());
    span.end();
    root.end();
    return within;
  }

  /** Sends a state twice: with PUT, and as log records in parts. */
  private void checkpoint(Context at, String encoding, String mediaType, byte[] state) throws Exception {
    Files.write(folder.resolve(encoding), state);
    SpanContext where = Span.fromContext(at).getSpanContext();
    URI url =
        URI.create(
            String.format(
                "%s/v1/checkpoints/%s/state?run=%s&span=%s&label=put",
                query, newId(), where.getTraceId(), where.getSpanId()));
    HttpRequest put =
        HttpRequest.newBuilder(url)
            .header("content-type", mediaType)
            .PUT(HttpRequest.BodyPublishers.ofByteArray(state))
            .build();
    HttpResponse<String> answer = HttpClient.newHttpClient().send(put, HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() != 200) {
      throw new IllegalStateException(answer.body());
    }
    String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(state));
    String id = newId();
    int count = (state.length + PART - 1) / PART;
    for (int index = 0; index < count; index++) {
      byte[] part = Arrays.copyOfRange(state, index * PART, Math.min(state.length, (index + 1) * PART));
      Attributes about =
          Attributes.builder()
              .put("playhead.checkpoint.id", id)
              .put("playhead.checkpoint.part.index", index)
              .put("playhead.checkpoint.part.count", count)
              .put("playhead.checkpoint.sha256", digest)
              .put("playhead.checkpoint.encoding", encoding)
              .put("playhead.checkpoint.label", "parts")
              .build();
      event(at, "playhead.checkpoint.part", Value.of(part), about);
    }
  }

  private static byte[] random(int size) {
    byte[] bytes = new byte[size];
    RANDOM.nextBytes(bytes);
    return bytes;
  }

  private static String newId() {
    return HexFormat.of().formatHex(random(16));
  }

  /** The same in all languages: the receiver stores it once. */
  private static byte[] state() {
    String content = "<ø> & ☃\\n".repeat(20_000);
    return ("{\"step\":1,\"messages\":[{\"content\":\"" + content + "\"}],"
            + "\"ratio\":0.5,\"done\":false,\"none\":null}")
        .getBytes(StandardCharsets.UTF_8);
  }

  private static void check(CompletableResultCode done) {
    if (!done.join(60, TimeUnit.SECONDS).isSuccess()) {
      throw new IllegalStateException("not everything was acknowledged");
    }
  }

  public static void main(String[] words) throws Exception {
    boolean isGrpc = words[0].equals("grpc");
    String endpoint = words[1];
    SpanExporter spans =
        isGrpc
            ? OtlpGrpcSpanExporter.builder().setEndpoint(endpoint).build()
            : OtlpHttpSpanExporter.builder().setEndpoint(endpoint + "/v1/traces").build();
    LogRecordExporter logs =
        isGrpc
            ? OtlpGrpcLogRecordExporter.builder().setEndpoint(endpoint).build()
            : OtlpHttpLogRecordExporter.builder().setEndpoint(endpoint + "/v1/logs").build();
    Resource about = Resource.create(Attributes.of(AttributeKey.stringKey("service.name"), "shop"));
    SdkTracerProvider tracing =
        SdkTracerProvider.builder()
            .setResource(about)
            .addSpanProcessor(BatchSpanProcessor.builder(spans).build())
            .build();
    SdkLoggerProvider logging =
        SdkLoggerProvider.builder()
            .setResource(about)
            .addLogRecordProcessor(BatchLogRecordProcessor.builder(logs).build())
            .build();
    Sender sender = new Sender(tracing.get("sender"), logging.get("sender"), words[2], Path.of(words[3]));
    Context last = Context.root();
    for (int count = 0; count < TRACES; count++) {
      last = sender.run();
    }
    sender.checkpoint(last, "json", "application/json", state());
    sender.checkpoint(last, "bytes", "application/octet-stream", random(300_000));
    check(tracing.forceFlush());
    check(logging.forceFlush());
    check(tracing.shutdown());
    check(logging.shutdown());
    SpanContext context = Span.fromContext(last).getSpanContext();
    System.out.println(context.getTraceId() + " " + context.getSpanId());
  }
}
