// The conversation of a run, each message once.
import { here, link, move } from "../address.ts";
import { useEffect, useMemo, useState } from "preact/hooks";
import { LeftOut, Message, useAsked, Waiting } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { took } from "../words.ts";

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
  const { run = "last", find = "" } = here();
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
  return <main><div class="bar"><button onClick={copy}>{copied ? "copied" : "copy as Markdown"}</button>
      <input type="search" aria-label="find in the conversation" placeholder="find" value={find} onChange={(event: any) => move({ find: event.target.value })} />
      {find && <span class="quiet" role="status">{articles.length} messages</span>}</div>
    <LeftOut sentences={value.left_out} />
    {articles.slice(0, most)}</main>;
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
    const message = <Message who={` ${one.role} ${when}`} parts={parts} kind={one.kind} results={sought ? undefined : results}>{head}</Message>;
    return <article key={at}>{one.kind === "system" || one.kind === "tools"
      ? <details><summary>{one.kind === "tools" ? `${one.parts.length} tools` : "system"}</summary>{message}</details>
      : message}</article>;
  });
}
