// The conversation of a run, each message once.
import { here, link, move } from "../address.ts";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Empty, Json, LeftOut, Message, useAsked, Waiting } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { cost, took } from "../words.ts";

/** As Markdown, for copying. */
export function markdown(said: any[]) {
  return said
    .map((one) => {
      const texts = one.parts.map((part: any) =>
        part.type === "text" ? part.content : "```json\n" + JSON.stringify(part, null, 1) + "\n```");
      return `### ${one.role} (step ${one.step})\n\n${texts.join("\n\n")}\n`;
    })
    .join("\n");
}

const A_FRAME = 100;

/**
 * Results of tools that the model called before, by the ids of the calls.
 *
 * @returns with the step that was told first
 */
function resultsOf(said: any[]): Map<string, {part: any, step: number}> {
  const called = new Set();
  const found = new Map();
  for (const one of said)
    for (const part of one.parts) {
      if (part.type === "tool_call" && part.id) called.add(part.id);
      else if (part.type === "tool_call_response" && called.has(part.id) && !found.has(part.id)) found.set(part.id, { part, step: one.step });
    }
  return found;
}

export function Transcript() {
  const { run = "last", find = "", as = "chat" } = here();
  const { value, problem } = useAsked(`${pathOf(run)}/transcript`);
  const [copied, setCopied] = useState(false);
  // A long conversation is there in parts, one a frame, so that its beginning is read at once.
  const [most, setMost] = useState(A_FRAME);
  const articles = useMemo(() => (value ? told(value.said, run, find.toLowerCase()) : []), [value, find]);
  useEffect(() => {
    if (most >= articles.length) return;
    const frame = requestAnimationFrame(() => setMost(most + A_FRAME));
    return () => cancelAnimationFrame(frame);
  }, [most, articles]);
  if (!value) return <main><Waiting problem={problem} /></main>;
  const copy = () => navigator.clipboard.writeText(markdown(value.said)).then(() => setCopied(true));
  const sought = as === "json" && find ? value.said.filter((one: any) => JSON.stringify(one.parts).toLowerCase().includes(find.toLowerCase())) : value.said;
  return <main><div class="bar"><span class="group">{["chat", "json"].map((one) => <button key={one} name={`as-${one}`} aria-pressed={as === one} onClick={() => move({ as: one })}>{one === "chat" ? "Chat" : "JSON"}</button>)}</span>
      <button onClick={copy}>{copied ? "Copied" : "Copy as Markdown"}</button>
      <input type="search" aria-label="find in the conversation" placeholder="find" value={find} onChange={(event: any) => move({ find: event.target.value })} />
      {find && <span class="quiet" role="status">{as === "json" ? sought.length : articles.length} messages</span>}
      {!find && <span class="quiet">{usedIn(value.said)}</span>}</div>
    {value.said.length ? <LeftOut sentences={value.left_out} /> : <Empty title="No conversation was recorded" commands={["playhead record --level exchanges agent.py"]}>The run has no messages of a model. Record it with its exchanges, or send content in its spans:</Empty>}
    {as === "json" ? value.said.length > 0 && <Json value={sought} name="messages" open /> : articles.slice(0, most)}</main>;
}

/** Tokens and cost of an answer. */
const usageOf = (one: any) => one.input_tokens === null ? "" : [`${one.input_tokens.toLocaleString("en-US")}→${one.output_tokens.toLocaleString("en-US")} tokens`, cost(one.cost_usd)].filter(Boolean).join(", ");

/** Those of all answers that are shown. */
function usedIn(said: any[]) {
  const answers = said.filter((one) => one.input_tokens !== null);
  const sum = (name: string) => answers.reduce((before, one) => before + (one[name] ?? 0), 0);
  return answers.length ? `${answers.length} answers, ${usageOf({ input_tokens: sum("input_tokens"), output_tokens: sum("output_tokens"), cost_usd: sum("cost_usd") || null })}` : "";
}

/** What is shown of what was said: all of it, results beside their calls, or where a text is. */
function told(said: any[], run: string, sought: string) {
  const began = said[0]?.time_ns ?? 0;
  const lanes = new Set(said.map((one) => one.lane));
  const results = resultsOf(said);
  const beside = (part: any) => results.get(part.id)?.part === part;
  const found = said.filter((one) =>
    sought ? JSON.stringify(one.parts).toLowerCase().includes(sought) : !(one.parts.length && one.parts.every(beside)));
  return found.map((one, at) => {
    const head = <a href={link({ view: "run", run, step: one.step })}>step {one.step}</a>;
    const when = `+${took(one.time_ns - began)}${lanes.size > 1 && one.lane ? ` ${one.lane}` : ""}`;
    const parts = sought ? one.parts : one.parts.filter((part: any) => !beside(part));
    const message = <Message who={` ${one.role} ${when}`} parts={parts} kind={one.kind} results={sought ? undefined : results} used={usageOf(one)}>{head}</Message>;
    return <article key={at}>{one.kind === "system" || one.kind === "tools"
      ? <details><summary>{one.kind === "tools" ? `${one.parts.length} tools` : "system"}</summary>{message}</details>
      : message}</article>;
  });
}
