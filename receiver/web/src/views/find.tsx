// What was said, in all runs.
import { go, here, link } from "../address.ts";
import { useAsked, Waiting } from "../parts.tsx";
import { shown } from "../words.ts";

export function Find() {
  const { q = "" } = here();
  const { value, problem } = useAsked(q ? "search" : "", { q, limit: 100 });
  return <main><form class="bar" onSubmit={(event: any) => { event.preventDefault(); go({ view: "find", q: event.target.q.value }); }}>
      <input type="search" name="q" aria-label="find in all runs" value={q} placeholder="tool:search &quot;order 81&quot;" /></form>
    {q && !value && <Waiting problem={problem} />}
    {value && <p class="note" role="status">{value.hits.length} hits{value.behind ? `; ${value.behind} batches are not indexed yet` : ""}</p>}
    {value?.hits.map((hit: any, at: number) => <section class="said" key={at}>
      <a href={link({ view: "run", run: hit.run, step: hit.step ?? "", span: hit.step === null ? hit.span_id : "" })}>{shown(hit.run)}{hit.step === null ? "" : `:${hit.step}`}</a> <span class="quiet">{shown(hit.who)}</span>
      <Excerpt text={hit.excerpt} marks={hit.highlights} /></section>)}</main>;
}

/** A text with what was found in it marked. Places count characters, not units of UTF-16. */
function Excerpt({ text, marks }: {text: string, marks: [number, number][]}) {
  const letters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const [from, to] of marks) {
    parts.push(shown(letters.slice(at, from).join("")), <mark key={from}>{shown(letters.slice(from, to).join(""))}</mark>);
    at = to;
  }
  parts.push(shown(letters.slice(at).join("")));
  return <pre class="text" tabIndex={0}>{parts}</pre>;
}
