// Logic of the pages that needs no browser: rows, folds, differences of texts, words.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

const pages = new URL("../../../receiver/web/src/", import.meta.url);
const { Outline, foldedSteps, repeats, samplesOf, whatDiffers } = await import(new URL("outline.ts", pages));
const { changedLines, wordDiff } = await import(new URL("word_difference.ts", pages));
const { formRequest, newMessage, partsOf, settingOf, withValue } = await import(new URL("request_form.ts", pages));
const { changesOf } = await import(new URL("state_changes.ts", pages));
const { brief, shown, took, cost, age } = await import(new URL("words.ts", pages));
const { kindOf } = await import(new URL("kinds.ts", pages));
const { density, notches, ticksOf } = await import(new URL("timeline.ts", pages));

const { editOf, forkCommand, replayCommand, word } = await import(new URL("commands.ts", pages));
const { byTime, completions, fieldAt, narrowed, widthOf } = await import(new URL("query_words.ts", pages));
const { quantile, rate, readFigures, share, valueOf } = await import(new URL("figures.ts", pages));

/** A run whose steps, all below one root, have these names; `!` marks a failure. */
function outlineOf(names) {
  const count = names.length + 1;
  const zeros = Array(count).fill(0);
  const all = [...new Set(["root", ...names.map((one) => one.replace("!", ""))])];
  return new Outline({
    run: {},
    spans: count,
    names: all,
    span_id: [...Array(count).keys()].map((at) => at.toString(16).padStart(16, "0")),
    parent: [-1, ...names.map(() => 0)],
    depth: [0, ...names.map(() => 1)],
    below: [names.length, ...names.map(() => 0)],
    name: [0, ...names.map((one) => all.indexOf(one.replace("!", "")))],
    start_ns: [0, ...names.map((_, at) => at * 10)],
    duration_ns: [names.length * 10, ...names.map(() => 10)],
    step: [0, ...names.map((_, at) => at + 1)],
    flags: [0, ...names.map((one) => (one.endsWith("!") ? 1 : 0))],
    input_tokens: zeros,
    output_tokens: zeros,
    cost_usd: Array(count).fill(null),
  });
}

test("what is below a collapsed row is left out of the tree", () => {
  const outline = outlineOf(["a", "b"]);
  assert.deepEqual([...outline.tree()], [0, 1, 2]);
  outline.expandTo(0);
  assert.deepEqual([...outline.tree()], [0]);
  outline.reveal(2);
  assert.deepEqual([...outline.tree()], [0, 1, 2]);
});

test("the beginning of a run is shown before the rest is there", () => {
  const all = outlineOf(["a", "b", "c"]);
  assert.ok(all.whole);
  const first = new Outline({ run: {}, spans: 9, names: ["a"], span_id: ["0", "1"], parent: [-1, 0], depth: [0, 1], below: [8, 3],
    name: [0, 0], start_ns: [0, 1], duration_ns: [9, 1], step: [0, 4], flags: [0, 0], input_tokens: [0, 0], output_tokens: [0, 0], cost_usd: [null, null] });
  assert.ok(!first.whole);
  assert.deepEqual([...first.below], [1, 0]);
  assert.equal(first.ofStep(4), -1);
  assert.equal(first.ofStep(1), -1);
  first.expandTo(0);
  assert.deepEqual([...first.tree()], [0]);
});

test("a failure opens at its first failed step, another run at its overview", () => {
  const failure = outlineOf(["a", "b!", "c!"]);
  failure.run.status = "failure";
  assert.equal(failure.opening(), 2);
  const retried = outlineOf(["a", "b!", "c"]);
  retried.run.status = "success";
  assert.equal(retried.opening(), -1);
});

test("the start-up of a program is cut off, and the axis has round times", () => {
  const outline = outlineOf(["a", "b"]);
  assert.deepEqual(outline.work(), { from: 0, to: outline.end });
  outline.end = 1000;
  outline.start[1] = 700;
  outline.start[2] = 900;
  assert.deepEqual(outline.work(), { from: 688, to: 1000 });
  assert.deepEqual(ticksOf(0, 1000), [0, 200, 400, 600, 800, 1000]);
  assert.deepEqual(ticksOf(688, 1000), [700, 800, 900, 1000]);
});

test("names suggest the kind of a span", () => {
  assert.deepEqual(["chat gpt-4o", "GET", "execute_tool search", "invoke_agent a", "run x"].map(kindOf), ["model", "http", "tool", "agent", "other"]);
});

test("failures are found in both directions", () => {
  const outline = outlineOf(["a!", "b", "c!"]);
  assert.equal(outline.nextFailed(1, 1), 3);
  assert.equal(outline.nextFailed(3, -1), 1);
  assert.equal(outline.nextFailed(3, 1), -1);
});

test("repeats are folded after their first time, and failures never", () => {
  const outline = outlineOf(["ask", "look", "chat", "look", "chat", "look", "chat", "end"]);
  const folds = repeats(outline);
  assert.deepEqual(folds, [{ from: 3, to: 6, times: 2 }]);
  assert.deepEqual([...foldedSteps(outline, folds, new Set())], [1, 2, 3, -1, 8]);
  assert.deepEqual([...foldedSteps(outline, folds, new Set([0]))], [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(repeats(outlineOf(["a", "a!", "a", "b"])), []);
  assert.deepEqual(repeats(outlineOf(["a", "a", "b"])), []);
  const five = outlineOf(["a", "a", "a", "a", "a"]);
  assert.deepEqual(repeats(five, (row) => row === 5), [{ from: 1, to: 3, times: 3 }]);
});

test("everything is in the order in which it began, and nothing is left out", () => {
  const outline = outlineOf(["a", "b", "c"]);
  outline.start.set([0, 20, 10, 10]);
  outline.expandTo(0);
  assert.deepEqual([...outline.inTime()], [0, 2, 3, 1]);
});

test("a bar is cut where the pieces of its answer came, and stays a bar", () => {
  assert.deepEqual(notches([100, 150, 300], 100, 0.1), [0, 5, 20]);
  assert.deepEqual(notches([100, 110, 120, 150], 100, 0.1), [0, 5]);
  assert.deepEqual(notches([], 0, 1), []);
});

test("a million rows are laid out in well under a second of the processor", () => {
  const outline = outlineOf(Array(1_000_000).fill("a"));
  const began = process.cpuUsage();
  assert.equal(outline.tree().length, 1_000_001);
  assert.equal(density(outline, 1000).most > 0, true);
  assert.ok(process.cpuUsage(began).user < 1e6);
});

test("a difference of texts has all words of both sides in order", () => {
  const parts = wordDiff("pay order 81 now please", "pay order 82 please");
  const side = (how) => parts.filter((one) => one.how !== how).map((one) => one.text).join("");
  assert.equal(side("new"), "pay order 81 now please");
  assert.equal(side("gone"), "pay order 82 please");
  assert.ok(parts.some((one) => one.how === "same" && one.text.includes("pay order")));
  assert.deepEqual(wordDiff("", ""), []);
  const long = Array(5000).fill("x").join(" ");
  assert.equal(wordDiff(long, "y").map((one) => one.text).join("").includes("y"), true);
});

test("hidden characters are spelt out", () => {
  assert.equal(shown("a\u001b[31m\u202eb\ud800c\u0000"), "a\\u001b[31m\\u202eb\\ud800c\\u0000");
  assert.equal(shown("é😀\n日本"), "é😀\n日本");
  assert.equal(brief("a\nb".repeat(200), 10), "a ba ba ba…");
  assert.equal(shown(null), "");
});

test("durations, money and ages", () => {
  assert.deepEqual([-1, 900, 1.5e6, 2e8, 6.5e9, 61e9].map(took), ["running", "1 µs", "1.5 ms", "200 ms", "6.5 s", "1m01s"]);
  assert.deepEqual([null, 0, 0.0042, 1.5].map(cost), ["", "$0.00", "$0.0042", "$1.50"]);
  assert.equal(age(0, 7200_000), "2h");
});

test("commands come back from a shell as they were meant", () => {
  const texts = ["refund-7", "", "-x", "it's; rm -rf ~ $(id) `id` \\ \"", "a\nb\tc\x1b[31m\x07", "\u202ereversed\u2066", "ü 漢 😀 \u{e0041}", "*?[a] !! {1,2} #", "\\n \\u0041"];
  const typed = texts.map(word);
  for (const one of typed) assert.doesNotMatch(one, /[\u0000-\u001f\u202e\u2066]/);
  const read = execFileSync("bash", ["-c", `printf '%s\\0' ${typed.join(" ")}`], { env: { LC_ALL: "C.UTF-8" }, encoding: "utf8" });
  assert.deepEqual(read.split("\0").slice(0, -1), texts);
  assert.equal(word("\ud800"), "'\ufffd'");
});

test("commands name the run, the step and what is changed", () => {
  assert.equal(replayCommand("refund-7", 3), "playhead replay refund-7 --from 3");
  assert.equal(replayCommand("refund-7", 0), "playhead replay refund-7");
  assert.equal(forkCommand("refund-7", 3, [{ path: "", value: "" }], false), "playhead fork refund-7:3");
  assert.equal(
    forkCommand("refund-7", 3, [{ path: "request.messages[-1].content", value: "order 82, it's" }], true),
    `playhead fork refund-7:3 --edit 'request.messages[-1].content=order 82, it'\\''s' --offline`,
  );
});

test("an edit is sent as it is typed for the command", () => {
  assert.equal(editOf("", "x"), null);
  assert.deepEqual(editOf("request.model", "gpt-4.1"), { path: "request.model", value: "gpt-4.1", remove: false, add: false });
  assert.deepEqual(editOf("temperature", "0.5"), { path: "request.temperature", value: 0.5, remove: false, add: false });
  assert.deepEqual(editOf("+messages[0]", '{"a": [1]}'), { path: "request.messages[0]", value: { a: [1] }, remove: false, add: true });
  assert.deepEqual(editOf("response.id!", ""), { path: "response.id", value: null, remove: true, add: false });
  assert.deepEqual(editOf("requested", "@file"), { path: "request.requested", value: "@file", remove: false, add: false });
});

test("a fold names what differs between its repetitions", () => {
  const outline = outlineOf(["chat", "find", "chat", "find", "chat", "find", "chat", "find", "chat", "find"]);
  const [fold] = repeats(outline);
  assert.deepEqual(samplesOf(outline, fold).map((rows) => rows.map((row) => outline.step[row])), [[3, 4], [5, 6], [7, 8]]);
  assert.deepEqual(whatDiffers(["find order 81 now", "find order 82 now", "find order 83 now"]), ["81", "82", "83"]);
  assert.deepEqual(whatDiffers(["same", "same"]), []);
});

test("a request is edited as a form, whatever provider it is for", () => {
  const openai = formRequest('{"model": "m", "temperature": 0.5, "messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]}], "tools": [{"function": {"name": "find"}}], "other": {"kept": [1]}}');
  const fields = (request) => partsOf(request).flatMap((part) => part.items.flatMap((item) => item.fields.map((field) => `${part.title} ${field.path.join(".")} ${field.kind}`)));
  assert.deepEqual(fields(openai), ["Settings model line", "Settings temperature line", "Messages messages.0.content text", "Messages messages.1.content.0.text text", "Messages messages.1.content.1 json", "Tools tools.0 json"]);
  assert.deepEqual(fields({ system: "be kind", contents: [{ role: "user", parts: [{ text: "hi" }] }] }), ["Instructions system text", "Messages contents.0.parts.0.text text"]);
  const changed = withValue(withValue(openai, ["messages", 0, "content"], "bye"), ["tools", 0], undefined);
  assert.deepEqual([changed.messages[0].content, changed.tools, changed.other, openai.messages[0].content], ["bye", [], { kept: [1] }, "hi"]);
  assert.deepEqual([settingOf("0.7", 1), settingOf("7", "a"), settingOf("x", 1)], [0.7, "7", "x"]);
  assert.deepEqual(newMessage([{ role: "user", content: [{ type: "input_text", text: "a" }] }]), { role: "user", content: [{ type: "input_text", text: "" }] });
  for (const none of ["[]", "{", '{"seed": 12345678901234567890}']) assert.equal(formRequest(none), undefined);
});

test("of two texts the lines far from a change are left out", () => {
  assert.deepEqual(changedLines("a\nb\nc\nd", "a\nx\nd"), { left: "a\nb\nc\nd", right: "a\nx\nd" });
  const lines = Array.from({ length: 100 }, (_, at) => `line ${at}`);
  const { left, right } = changedLines(lines.join("\n"), lines.with(50, "other").join("\n"));
  assert.deepEqual(left.split("\n"), ["…", "line 48", "line 49", "line 50", "line 51", "line 52", "…"]);
  assert.equal(right, left.replace("line 50", "other"));
  assert.deepEqual(changedLines("a\nb\nc\nd", "a\nb\nc\nd"), { left: "…", right: "…" });
});

test("a step changes variables, files, rows, checkpoints and output", () => {
  const before = { states: [{ name: "a", value: 1 }, { name: "b", value: 2 }], files: [{ path: "f", content: { text: "x" } }], databases: [{ path: "d", tables: [{ name: "t", rows: [[1]] }] }], checkpoints: [], stdout: "", stderr: "" };
  const now = { ...before, states: [{ name: "a", value: 3 }], files: [], databases: [{ path: "d", tables: [{ name: "t", rows: [[1], [2]] }] }], checkpoints: [{ name: "c1", label: "paid" }], stdout: "said" };
  assert.deepEqual(changesOf(before, before), []);
  assert.deepEqual(changesOf(before, now).map((one) => `${one.kind} ${one.name} ${one.how}`), ["variable a changed", "variable b removed", "file f removed", "table d: t changed", "checkpoint c1 paid added", "output stdout added"]);
});

test("what part of the replays went as recorded", () => {
  const counted = (mode, outcome, value) => ({ name: "replays", labels: `mode="${mode}",outcome="${outcome}"`, value });
  const figures = [counted("replay", "identical", 5), counted("replay", "volatile", 1), counted("replay", "diverged", 2), counted("fork", "success", 9)];
  assert.equal(share(figures, "replays", ["identical", "volatile"], "replay"), "75 %");
  assert.equal(share(figures, "replays", ["blocked"], "replay"), "0 %");
  assert.equal(share(figures, "other", ["identical"]), "");
});

test("figures are read as a receiver prints them", () => {
  const text = [
    "# HELP playhead_store_bytes Bytes", "# TYPE playhead_store_bytes gauge", "playhead_store_bytes 4096.0",
    'playhead_forward_behind{destination="1"} 7.0', 'q_bucket{le="0.1"} 5.0', 'q_bucket{le="1.0"} 9.0', 'q_bucket{le="+Inf"} 10.0', "q_count 10.0", "",
  ].join("\n");
  const figures = readFigures(text);
  assert.equal(valueOf(figures, "playhead_store_bytes"), 4096);
  assert.equal(valueOf(figures, "playhead_forward_behind", 'destination="1"'), 7);
  assert.equal(valueOf(figures, "nothing"), 0);
  assert.deepEqual([0.5, 0.9, 1].map((share) => quantile(figures, "q", share)), [0.1, 1, Infinity]);
  assert.ok(Number.isNaN(quantile(figures, "other", 0.5)));
  assert.equal(rate({ ms: 0, figures: [] }, { ms: 2000, figures }, "playhead_store_bytes"), 2048);
});

test("words of a query are completed where they are typed", () => {
  assert.ok(completions("").includes("agent:"));
  assert.deepEqual(completions("agent:refund sta"), ["agent:refund status:"]);
  assert.deepEqual(completions("status:f"), ["status:failure"]);
  assert.equal(fieldAt('tool:search agent:"my'), "agent");
  assert.deepEqual(completions('x agent:', ["refund", "my agent"]), ["x agent:refund", 'x agent:"my agent"']);
  assert.deepEqual(completions('agent:"my', ["refund", "my agent"]), ['agent:"my agent"']);
  assert.deepEqual(completions('"order 81'), []);
  assert.deepEqual(completions("agent:x tok"), ["agent:x tokens>=", "agent:x tokens<"]);
  assert.equal(fieldAt("prompt_version:"), "prompt_version");
  assert.deepEqual(completions("user:", ["anna b"]), ['user:"anna b"']);
  assert.deepEqual(completions('customer.tier:"very go'), []);
});

test("a query is narrowed, and what it said of the field is replaced", () => {
  assert.equal(narrowed('agent:refund status:failure "order 81" cost>=0.5', "status", "success"), 'agent:refund "order 81" cost>=0.5 status:success');
  assert.equal(narrowed('agent:"a b"', "agent", 'c "d"'), 'agent:"c d"');
  assert.equal(narrowed("agent:x", "agent", ""), "");
  assert.equal(narrowed('customer.tier:"very gold" user:a', "user", "b"), 'customer.tier:"very gold" user:b');
});

test("time without runs is filled in", () => {
  const groups = [{ key: "2026-11-26T13:00Z" }, { key: "2026-11-26T10:00Z" }];
  const { at, groups: found } = byTime(groups, "hour");
  assert.deepEqual(found.map((one) => one?.key ?? null), ["2026-11-26T10:00Z", null, null, "2026-11-26T13:00Z"]);
  assert.equal(at[1] - at[0], 3600);
  assert.deepEqual(byTime([], "day"), { at: [], groups: [] });
  assert.ok(byTime([{ key: "1970-01-01" }, { key: "2026-11-26" }], "day").at.length <= 2001);
  assert.deepEqual([60e9, 86400e9, 90 * 86400e9].map(widthOf), ["minute", "hour", "day"]);
});

test("the attempts of a step are those below it", () => {
  const outline = outlineOf(["call", "try!", "try"]);
  outline.below[1] = 2;
  outline.step.set([0, 1, 0, 0]);
  outline.flags.set([0, 0, 3, 2]);
  assert.deepEqual(outline.attempts(1), [2, 3]);
  assert.deepEqual(outline.attempts(0), []);
});

test("marks of rows say what matters most first, and leave out what the row says already", async () => {
  const { countOf, marksOf, timeInStates } = await import(new URL("findings.ts", pages));
  const found = {
    failures: [{ step: 2, code: "rate_limit", recovered: true }, { step: null, code: "uncaught_exception", recovered: false }],
    loops: [{ first: "3.1", times: 4, same_result: true }, { first: "3.1", times: 9, same_result: false }],
    signals: [{ type: "tool_success", step: 2, value: true }, { type: "instruction_from_data", step: 2, value: true }, { type: "schema_valid", step: 2, value: false }],
    decisions: [{ step: 2, chosen: "search", derived: false }, { step: 3, chosen: "search", derived: true }],
    transitions: [{ step: 2, state: "planning", source: "phase", lasted_ns: 5, time_ns: 0 }, { step: 3, state: "tool", source: "steps", lasted_ns: 1, time_ns: 5 }, { step: 3, state: "planning", source: "phase", lasted_ns: null, time_ns: 6 }],
    reports: [{ kind: "message", step: 3, fields: { to: "billing" } }],
  };
  const marks = marksOf(found);
  assert.deepEqual(marks.get(2).map(({ kind, text }) => `${kind} ${text}`), ["recovered rate limit", "signal instruction from data", "signal schema valid", "decision search", "state planning"]);
  assert.deepEqual(marks.get(3).map(({ text }) => text), ["loop ×4", "planning"]);
  assert.equal(countOf(found), 8);
  assert.deepEqual(timeInStates(found.transitions, 26), [{ state: "planning", ns: 25, times: 2 }, { state: "tool", ns: 1, times: 1 }]);
});

test("a field has one value in a query, and times go to and fro", async () => {
  const { valueIn } = await import(new URL("query_words.ts", pages));
  const { localTime, utcTime } = await import(new URL("words.ts", pages));
  assert.equal(valueIn('agent:"my agent" status:failure "status:success"', "agent"), "my agent");
  assert.equal(valueIn("sub.agent:x", "agent"), "");
  assert.equal(utcTime(localTime("2026-11-29T10:00:00Z")), "2026-11-29T10:00:00Z");
  assert.equal(localTime("1h") + utcTime(""), "");
});

test("health is said in sentences, what is bad first", async () => {
  const { healthOf, ratesOver } = await import(new URL("figures.ts", pages));
  const look = (ms, text) => ({ ms, figures: readFigures(text) });
  const well = look(0, "playhead_search_lag 3\nplayhead_items_rejected_total 7\n");
  assert.deepEqual(healthOf(well, well).map(({ tone }) => tone), ["good"]);
  const ill = look(2000, 'playhead_search_lag 900\nplayhead_items_rejected_total 9\nplayhead_forward_stuck{destination="1"} 1\nplayhead_forward_behind{destination="1"} 1200\nplayhead_runs_stuck{reason="loop"} 1\n');
  const said = healthOf(well, ill);
  assert.equal(said[0].text, "Destination 1 accepts nothing: 1,200 items waiting.");
  assert.deepEqual(said.map(({ tone }) => tone), ["bad", "odd", "odd", "odd"]);
  assert.equal(said[1].text, "2 items could not be read since this page was opened and were rejected.");
  assert.equal(said[3].text, "1 running agent makes no progress.");
  assert.deepEqual(ratesOver([well, ill], "playhead_items_rejected_total"), [null, 1]);
});

test("charts begin with what the receiver saw before the page was opened", async () => {
  const { looksOf, valuesOver } = await import(new URL("figures.ts", pages));
  const sampled = { time_ns: [1e9, 2e9], metrics: { playhead_search_lag: [4, 5], 'playhead_forward_behind{destination="1"}': [null, 7] } };
  const found = looksOf(sampled);
  assert.deepEqual(found.map(({ ms }) => ms), [1000, 2000]);
  assert.deepEqual(valuesOver(found, "playhead_search_lag"), [4, 5]);
  assert.deepEqual(valuesOver(found, "playhead_forward_behind", 'destination="1"'), [0, 7]);
});

test("rare edges are left out of a picture, but no step loses its way from the start", async () => {
  const { lineThrough, mainEdges } = await import(new URL("graph_layout.ts", pages));
  const edges = [{ source: "a", target: "b", count: 100 }, { source: "b", target: "c", count: 1 }, { source: "a", target: "c", count: 2 }];
  assert.deepEqual(mainEdges(edges, 0.1).map(({ target, count }) => `${target} ${count}`), ["b 100", "c 2"]);
  assert.equal(mainEdges(edges, 0).length, 3);
  assert.equal(lineThrough([{ x: 0, y: 0 }, { x: 1, y: 2 }]), "M0,0L1,2");
});
