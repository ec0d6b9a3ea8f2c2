// What several views are made of: answers asked for, messages, JSON, keys.
import { ask } from "./api.ts";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { KindIcon } from "./icons.tsx";
import { brief, shown } from "./words.ts";

/**
 * An answer of the query API; asked again when path or parameters change.
 * @param path empty: nothing is asked
 *
 * @param again a number that makes it ask again: after the answer to the question before, and a rest as long as that took
 * @returns value is null until it has come
 */
export function useAsked(path: string, wanted: Record<string, string | number> = {}, again: number = 0): {value: any, problem: string} {
  const [found, setFound] = useState({ value: null, problem: "", key: "" });
  const [rested, setRested] = useState(0);
  const turn = useRef({ key: "", again: -1, busy: false, stop: new AbortController() });
  const key = path + "?" + JSON.stringify(wanted);
  useEffect(() => () => turn.current.stop.abort(), [key]);
  useEffect(() => {
    const before = turn.current;
    if (!path || (before.key === key && (before.busy || before.again === again))) return;
    const mine: typeof before = { key, again, busy: true, stop: new AbortController() };
    turn.current = mine;
    const began = performance.now();
    ask(path, wanted, mine.stop.signal)
      .then(
        (value) => setFound({ value, problem: "", key }),
        (problem) => { if (!mine.stop.signal.aborted) setFound({ value: null, problem: String(problem.message), key }); },
      )
      .then(() => new Promise((done) => setTimeout(done, performance.now() - began)))
      .then(() => { mine.busy = false; setRested((times) => times + 1); });
  }, [key, again, rested]);
  return found.key === key ? found : { value: null, problem: "" };
}

/** The last answer until the next has come, so that nothing blinks. */
export function useKept<T>(value: T | null) {
  const kept = useRef(value);
  if (value) kept.current = value;
  return kept.current;
}

/**
 * A value that follows another, at most once in a while: what is asked for while a key is held down.
 */
export function useSettled<T>(value: T, restMs: number = 120): T {
  const [settled, setSettled] = useState(value);
  const since = useRef(0);
  useEffect(() => {
    const rest = Math.max(0, since.current + restMs - performance.now());
    const timer = setTimeout(() => { since.current = performance.now(); setSettled(value); }, rest);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Keys of a view. @param on true: it was used */
export function useKeys(on: (key: string, event: KeyboardEvent) => boolean | void) {
  useLayoutEffect(() => {
    const heard = (event: KeyboardEvent) => {
      const at = (event.target as HTMLElement);
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName)) return;
      if (on(event.key, event)) event.preventDefault();
    };
    addEventListener("keydown", heard);
    return () => removeEventListener("keydown", heard);
  });
}

/** A number that grows with each change of the colour scheme: a reason to draw a picture again. */
export function useScheme(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const changed = () => setChanges((before) => before + 1);
    addEventListener("scheme", changed);
    return () => removeEventListener("scheme", changed);
  }, []);
  return changes;
}

/** What is waited for, or why it did not come. */
export function Waiting({ problem }: {problem: string}) {
  return problem
    ? <p class="problem" role="alert">{shown(problem)}</p>
    : <p class="note" role="status">loading</p>;
}

/** A part of a panel, with a heading. */
export function Card({ name, children }: { name: string; children: any }) {
  return <section class="card"><h2>{name}</h2><div class="in">{children}</div></section>;
}

/** A view without content: why, and the next command. */
export function Empty({ title, commands = [], children }: { title: string; commands?: string[]; children?: any }) {
  return <div class="empty"><h2>{title}</h2><p>{children}</p>{commands.length > 0 && <pre>{commands.join("\n")}</pre>}</div>;
}

const MOST_CHILDREN = 100;
const MOST_TEXT = 20_000;
const LAST_MESSAGES = 50;

/** A long text, its rest on demand. */
export function Text({ text, prose = false }: { text: unknown; prose?: boolean }) {
  const [all, setAll] = useState(false);
  const whole = String(text ?? "");
  const cut = !all && whole.length > MOST_TEXT;
  return <><pre class={prose ? "text prose" : "text"} tabIndex={0}>{shown(cut ? whole.slice(0, MOST_TEXT) : whole)}</pre>
    {cut && <button onClick={() => setAll(true)}>{whole.length - MOST_TEXT} more characters</button>}</>;
}

const MARKDOWN = /(^|\n)(#{1,6} |[-*+] |\d+\. |> |```|\|.+\|)|\*\*[^*\n]+\*\*|`[^`\n]+`/;
const MOST_FORMATTED = 200_000;
let markdown: Promise<any> | undefined;

/** The component that draws Markdown; loaded when a text needs it. */
function useMarkdown(on: boolean) {
  const [Drawn, setDrawn] = useState<any>(null);
  useEffect(() => {
    if (on) (markdown ??= import("./markdown.tsx")).then((module) => setDrawn(() => module.default), () => undefined);
  }, [on]);
  return on ? Drawn : null;
}

/** The list or object that a text is as JSON; undefined: it is none. */
export function jsonOf(text: string | null | undefined): any {
  if (!text || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A text as its author meant it: JSON as a tree, Markdown drawn, else prose. A switch shows the source. */
export function Formatted({ text, none = "" }: { text: unknown; none?: string }) {
  const whole = String(text ?? "");
  const [source, setSource] = useState(false);
  const json = useMemo(() => (whole.length <= MOST_FORMATTED ? jsonOf(whole) : undefined), [whole]);
  const marked = json === undefined && whole.length <= MOST_TEXT && MARKDOWN.test(whole);
  const Drawn = useMarkdown(marked && !source);
  if (!whole && none) return <p class="note">{none}</p>;
  const names = json !== undefined ? ["JSON", "Text"] : ["Markdown", "Text"];
  return <div>{(json !== undefined || marked) && <div class="group small">{names.map((name, at) => <button key={name} aria-pressed={source === (at === 1)} onClick={() => setSource(at === 1)}>{name}</button>)}</div>}
    {json !== undefined && !source ? <Json value={json} name={Array.isArray(json) ? "list" : "object"} open /> : Drawn ? <Drawn text={whole} /> : <Text text={whole} prose={!source} />}</div>;
}

const MOST_INLINE = 4;

/** Whether a value needs no line of its own. */
const isShort = (value: unknown) => value === null || (typeof value !== "object" && String(value).length <= 40);

/** A value as a tree whose branches are made when they are opened. */
export function Json({ value, name = "", open: first = false }: { value: any; name?: string; open?: boolean }) {
  const [open, setOpen] = useState(first);
  const [most, setMost] = useState(MOST_CHILDREN);
  if (value === null || typeof value !== "object")
    return <div>{name && <span class="quiet">{brief(name)}: </span>}
      {typeof value === "string" && value.length > 200
        ? <Text text={value} />
        : <span class="text">{shown(JSON.stringify(value))}</span>}</div>;
  const keys = Object.keys(value);
  if (keys.length <= MOST_INLINE && keys.every((key) => isShort(value[key])))
    return <div>{name && <span class="quiet">{brief(name)}: </span>}<span class="text">{shown(JSON.stringify(value))}</span></div>;
  return <details open={first} onToggle={(event: any) => setOpen(event.currentTarget.open)}>
    <summary>{brief(name) || "value"} <span class="quiet">{Array.isArray(value) ? "list" : "object"}, {keys.length}</span></summary>
    {open && keys.slice(0, most).map((key) => <div class="said" key={key}><Json value={value[key]} name={key} /></div>)}
    {open && keys.length > most && <button onClick={() => setMost(most + MOST_CHILDREN)}>{keys.length - most} more</button>}
  </details>;
}

const IMAGES = /^image\/(png|jpeg|gif|webp)$/;

/** An image whose bytes are in the message; nothing is fetched for it. */
function Image({ kind, base64 }: {kind: string, base64: string}) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    let made = "";
    try {
      made = URL.createObjectURL(new Blob([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], { type: kind }));
    } catch {
      // what is no base64 is no image
    }
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [kind, base64]);
  return url ? <img class="said-image" src={url} alt={`${kind}, ${base64.length} characters of base64`} /> : <p class="note">unreadable image</p>;
}

/** A part of a message. */
export function Part({ part }: {part: any}) {
  switch (part.type) {
    case "blob":
      return IMAGES.test(part.mime_type) && typeof part.content === "string"
        ? <Image kind={part.mime_type} base64={part.content} />
        : <Json value={part} name="blob" />;
    case "text":
      return <Formatted text={part.content} />;
    case "reasoning":
      return <details><summary class="quiet">reasoning</summary><Text text={part.content} /></details>;
    case "tool_call":
      return <div><KindIcon kind="tool" /> <b class="k-tool">{brief(part.name)}</b> <span class="quiet">called {brief(part.id)}</span>
        <Value value={part.arguments} /></div>;
    case "tool_call_response":
      return <div><KindIcon kind="tool" /> <span class="quiet">result {brief(part.id)}</span><Value value={part.response ?? part.result} /></div>;
    default:
      return <Json value={part} name={part.type ?? part.name ?? "part"} />;
  }
}

/** Text as text, everything else as a tree. */
function Value({ value }: {value: any}) {
  return typeof value === "string" ? <Formatted text={value} /> : <Json value={value} />;
}

const ROLE_KINDS: Record<string, string> = { user: "human", assistant: "model", tool: "tool", system: "agent", developer: "agent" };
const ROLE_CLASSES: Record<string, string> = { user: "user", tool: "tool", assistant: "output" };

/** The role in the line above a message. */
const roleOf = (who: string) => who.trim().split(" ")[0];

/**
 * A message. `results`: of tool calls by their ids, shown beside them; `used`: tokens and cost; `children`: what stands before who says it.
 */
export function Message({ who, parts, kind = "", results, used, children }: {who: string, parts: any[], kind?: string, results?: Map<string, {part: any, step: number}>, used?: any, children?: any}) {
  return <section class={`said ${kind || ROLE_CLASSES[roleOf(who)] || ""}`}><div class="who"><KindIcon kind={ROLE_KINDS[roleOf(who)] ?? "other"} />{children}{brief(who)}{used && <span class="end quiet">{used}</span>}</div>
    {parts.map((part, at) => part.type === "tool_call" && results?.has(part.id)
      ? <div class="two" key={at}><Part part={part} /><div><Part part={results.get(part.id)?.part} /><span class="quiet">sent in step {results.get(part.id)?.step}</span></div></div>
      : <Part part={part} key={at} />)}</section>;
}

/** Messages as they followed each other: the last of them, earlier ones on demand. */
export function Conversation({ messages, kind = "" }: {messages: any[], kind?: string}) {
  const [most, setMost] = useState(LAST_MESSAGES);
  const from = Math.max(0, messages.length - most);
  return <>{from > 0 && <button onClick={() => setMost(most * 10)}>{from} earlier messages</button>}
    {messages.slice(from).map((one, at) => <Message key={from + at} who={[one.role, one.finish_reason].filter(Boolean).join(" ")} parts={one.parts} kind={kind} />)}</>;
}

/** Sentences of what a recording left out. */
export function LeftOut({ sentences }: {sentences: string[]}) {
  return sentences.map((one) => <p class="note" key={one}>{shown(one)}</p>);
}
