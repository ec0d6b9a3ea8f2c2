// The exchanges of a span: headers, bytes as they were, and when each piece of an answer came.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Json, jsonOf, LeftOut, Text, useAsked, useScheme, Waiting } from "../parts.tsx";
import { drawChunks } from "../timeline.ts";
import { brief, shown, took } from "../words.ts";

const MOST_CHUNKS = 500;
/** Characters of the longest body that is shown as a whole. */
const MOST_PRETTY = 100_000;

export function Raw({ path }: {path: string}) {
  const { value, problem } = useAsked(`${path}/exchanges`);
  if (!value) return <Waiting problem={problem} />;
  if (!value.exchanges.length)
    return <LeftOut sentences={["no exchange is recorded for this span; record with --level exchanges"]} />;
  return value.exchanges.map((one: any, at: number) => <section key={one.id}>
    <h3>{value.exchanges.length > 1 ? `attempt ${at + 1}: ` : ""}{brief(one.key)} <span class={one.status_code >= 400 ? "bad" : "quiet"}>{one.status_code ?? "no response"} {one.end ?? "incomplete"}</span></h3>
    {one.error && <p class="problem">{shown(one.error)}</p>}
    <Headers pairs={one.request_headers} name="request headers" /><Bytes body={one.request} name="request" />
    <Headers pairs={one.response_headers} name="response headers" /><Chunks chunks={one.chunks} began={one.started_ns} />
    <Bytes body={one.response} name="response" />
  </section>);
}

function Headers({ pairs, name }: {pairs: [string, string][], name: string}) {
  return <details><summary>{name} <span class="quiet">{pairs.length}</span></summary>
    <table><tbody>{pairs.map(([key, value], at) => <tr key={at}><td>{shown(key)}</td><td class="text">{shown(value)}</td></tr>)}</tbody></table></details>;
}

/** A body: formatted if it is JSON, verbatim one click away. */
function Bytes({ body, name }: { body: any; name: string }) {
  const [verbatim, setVerbatim] = useState(false);
  const tree = useMemo(() => jsonOf(body?.text), [body]);
  if (!body) return <p class="note">{name}: no content was recorded</p>;
  const text = body.text ?? `base64 ${body.base64}`;
  if (!text) return <p class="note">{name} without a body</p>;
  const formatted = tree !== undefined && !verbatim;
  return <><h3>{name} {tree !== undefined && <span class="group small">{["Formatted", "Verbatim"].map((one, at) => <button key={one} aria-pressed={verbatim === (at === 1)} onClick={() => setVerbatim(at === 1)}>{one}</button>)}</span>}</h3>
    {formatted && text.length <= MOST_PRETTY && <Text text={JSON.stringify(tree, null, 2)} />}
    {formatted && <Json value={tree} name="as a tree" />}
    {formatted && text.length > MOST_PRETTY && <p class="note">{text.length} characters</p>}
    {!formatted && <Text text={text} />}</>;
}

/** When the pieces of an answer came, on an axis and as a table. */
function Chunks({ chunks, began }: {chunks: any[], began: number}) {
  const canvas = useRef<any>(null);
  const [most, setMost] = useState(MOST_CHUNKS);
  const scheme = useScheme();
  useLayoutEffect(() => { if (canvas.current) drawChunks(canvas.current, chunks.map((one) => one.time_ns - began), chunks.map(sizeOf)); }, [chunks, scheme]);
  if (!chunks.length) return null;
  return <><div class="axis"><canvas class="chunks" ref={canvas} aria-hidden="true"></canvas><span class="quiet">first after {took(chunks[0].time_ns - began)}</span><span class="quiet">last after {took(chunks.at(-1).time_ns - began)}</span></div>
    <details><summary>{chunks.length} chunks</summary>
    <table><thead><tr><th scope="col" class="right">After</th><th scope="col" class="right">Interval</th><th scope="col">As on the wire</th></tr></thead>
    <tbody>{chunks.slice(0, most).map((one, at) => <tr key={at}><td class="right">{took(one.time_ns - began)}</td><td class="right">{at ? took(Math.max(0, one.time_ns - chunks[at - 1].time_ns)) : ""}</td><td class="text">{shown(one.text ?? `base64 ${one.base64}`)}</td></tr>)}</tbody></table>
    {chunks.length > most && <button onClick={() => setMost(most + MOST_CHUNKS)}>{chunks.length - most} more</button>}</details></>;
}

const sizeOf = (chunk: {text: string | null, base64: string | null}) => chunk.text?.length ?? ((chunk.base64?.length ?? 0) * 3) / 4;
