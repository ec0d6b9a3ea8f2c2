// What several views are made of: answers asked for, messages, JSON, keys.
import { ask } from "./api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { brief, shown } from "./words.js";

/**
 * An answer of the query API; asked again when path or parameters change.
 * @param {string} path empty: nothing is asked
 * @param {Record<string, string | number>} wanted
 * @param {number} again a number that makes it ask again: after the answer to the question before, and a rest as long as that took
 * @returns {{value: any, problem: string}} value is null until it has come
 */
export function useAsked(path, wanted = {}, again = 0) {
  const [found, setFound] = useState({ value: null, problem: "", key: "" });
  const [rested, setRested] = useState(0);
  const turn = useRef({ key: "", again: -1, busy: false, stop: new AbortController() });
  const key = path + "?" + JSON.stringify(wanted);
  useEffect(() => () => turn.current.stop.abort(), [key]);
  useEffect(() => {
    const before = turn.current;
    if (!path || (before.key === key && (before.busy || before.again === again))) return;
    /** @type {typeof before} */
    const mine = { key, again, busy: true, stop: new AbortController() };
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

/**
 * A value that follows another, at most once in a while: what is asked for while a key is held down.
 * @template T @param {T} value @param {number} restMs @returns {T}
 */
export function useSettled(value, restMs = 120) {
  const [settled, setSettled] = useState(value);
  const since = useRef(0);
  useEffect(() => {
    const rest = Math.max(0, since.current + restMs - performance.now());
    const timer = setTimeout(() => { since.current = performance.now(); setSettled(value); }, rest);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Keys of a view. @param {(key: string, event: KeyboardEvent) => boolean | void} on true: it was used */
export function useKeys(on) {
  useLayoutEffect(() => {
    const heard = (/** @type {KeyboardEvent} */ event) => {
      const at = /** @type {HTMLElement} */ (event.target);
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName)) return;
      if (on(event.key, event)) event.preventDefault();
    };
    addEventListener("keydown", heard);
    return () => removeEventListener("keydown", heard);
  });
}

/** What is waited for, or why it did not come. @param {{problem: string}} props */
export function Waiting({ problem }) {
  return problem
    ? html`<p class="problem" role="alert">${shown(problem)}</p>`
    : html`<p class="note" role="status">loading</p>`;
}

const MOST_CHILDREN = 100;
const MOST_TEXT = 20_000;
const LAST_MESSAGES = 50;

/** A long text, its rest on demand. @param {{text: unknown}} props */
export function Text({ text }) {
  const [all, setAll] = useState(false);
  const whole = String(text ?? "");
  const cut = !all && whole.length > MOST_TEXT;
  return html`<pre class="text" tabindex="0">${shown(cut ? whole.slice(0, MOST_TEXT) : whole)}</pre>
    ${cut && html`<button onClick=${() => setAll(true)}>${whole.length - MOST_TEXT} more characters</button>`}`;
}

const MOST_INLINE = 4;

/** Whether a value needs no line of its own. @param {unknown} value */
const isShort = (value) => value === null || (typeof value !== "object" && String(value).length <= 40);

/** A value as a tree whose branches are made when they are opened. @param {{value: any, name?: string}} props */
export function Json({ value, name = "" }) {
  const [open, setOpen] = useState(false);
  const [most, setMost] = useState(MOST_CHILDREN);
  if (value === null || typeof value !== "object")
    return html`<div>${name && html`<span class="quiet">${brief(name)}: </span>`}
      ${typeof value === "string" && value.length > 200
        ? html`<${Text} text=${value} />`
        : html`<span class="text">${shown(JSON.stringify(value))}</span>`}</div>`;
  const keys = Object.keys(value);
  if (keys.length <= MOST_INLINE && keys.every((key) => isShort(value[key])))
    return html`<div>${name && html`<span class="quiet">${brief(name)}: </span>`}<span class="text">${shown(JSON.stringify(value))}</span></div>`;
  return html`<details onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
    <summary>${brief(name) || "value"} <span class="quiet">${Array.isArray(value) ? "list" : "object"}, ${keys.length}</span></summary>
    ${open && keys.slice(0, most).map((key) => html`<div class="said" key=${key}><${Json} value=${value[key]} name=${key} /></div>`)}
    ${open && keys.length > most && html`<button onClick=${() => setMost(most + MOST_CHILDREN)}>${keys.length - most} more</button>`}
  </details>`;
}

const IMAGES = /^image\/(png|jpeg|gif|webp)$/;

/** An image whose bytes are in the message; nothing is fetched for it. @param {{kind: string, base64: string}} props */
function Image({ kind, base64 }) {
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
  return url ? html`<img class="said-image" src=${url} alt=${`${kind}, ${base64.length} characters of base64`} />` : html`<p class="note">unreadable image</p>`;
}

/** A part of a message. @param {{part: any}} props */
export function Part({ part }) {
  switch (part.type) {
    case "blob":
      return IMAGES.test(part.mime_type) && typeof part.content === "string"
        ? html`<${Image} kind=${part.mime_type} base64=${part.content} />`
        : html`<${Json} value=${part} name="blob" />`;
    case "text":
      return html`<${Text} text=${part.content} />`;
    case "reasoning":
      return html`<details><summary class="quiet">reasoning</summary><${Text} text=${part.content} /></details>`;
    case "tool_call":
      return html`<div><b>${brief(part.name)}</b> <span class="quiet">called ${brief(part.id)}</span>
        <${Value} value=${part.arguments} /></div>`;
    case "tool_call_response":
      return html`<div><span class="quiet">result ${brief(part.id)}</span><${Value} value=${part.response ?? part.result} /></div>`;
    default:
      return html`<${Json} value=${part} name=${part.type ?? part.name ?? "part"} />`;
  }
}

/** Text as text, everything else as a tree. @param {{value: any}} props */
function Value({ value }) {
  return typeof value === "string" ? html`<${Text} text=${value} />` : html`<${Json} value=${value} />`;
}

/**
 * A message. `results`: of calls of tools by their ids, shown beside them; `children`: what stands before who says it.
 * @param {{who: string, parts: any[], kind?: string, results?: Map<string, {part: any, step: number}>, children?: any}} props
 */
export function Message({ who, parts, kind = "", results, children }) {
  return html`<section class=${`said ${kind}`}><div class="who">${children}${brief(who)}</div>
    ${parts.map((part, at) => part.type === "tool_call" && results?.has(part.id)
      ? html`<div class="two" key=${at}><${Part} part=${part} /><div><${Part} part=${results.get(part.id)?.part} /><span class="quiet">sent in step ${results.get(part.id)?.step}</span></div></div>`
      : html`<${Part} part=${part} key=${at} />`)}</section>`;
}

/** Messages as they followed each other: the last of them, earlier ones on demand. @param {{messages: any[], kind?: string}} props */
export function Conversation({ messages, kind = "" }) {
  const [most, setMost] = useState(LAST_MESSAGES);
  const from = Math.max(0, messages.length - most);
  return html`${from > 0 && html`<button onClick=${() => setMost(most * 10)}>${from} earlier messages</button>`}
    ${messages.slice(from).map((one, at) => html`<${Message} key=${from + at} who=${[one.role, one.finish_reason].filter(Boolean).join(" ")} parts=${one.parts} kind=${kind} />`)}`;
}

/** Sentences of what a recording left out. @param {{sentences: string[]}} props */
export function LeftOut({ sentences }) {
  return sentences.map((one) => html`<p class="note" key=${one}>${shown(one)}</p>`);
}
