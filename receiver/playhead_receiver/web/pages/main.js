// Which view is shown, and the keys that work in all of them.
import { answered } from "./ahead.js";
import { go, here, link } from "./address.js";
import { html, render, useEffect, useRef, useState } from "./html.js";
import { useKeys, Waiting } from "./parts.js";
import { VIEWS, viewOf } from "./views.js";
import { brief } from "./words.js";

/** Views whose modules have come. @type {Map<string, () => any>} */
const come = new Map();
const OF_A_RUN = ["run", "transcript", "playhead"];

const KEYS = [
  ["j k ↑ ↓", "row below, above"],
  ["s S", "next step, previous step"],
  ["n", "next sibling"],
  ["f", "parent"],
  ["e E", "next failure, previous failure"],
  ["g G", "first, last"],
  ["h l ← →", "collapse, expand; in the playhead: previous step, next step"],
  ["t", "steps, tree, everything"],
  ["- *", "collapse all, expand all"],
  ["+ 0 [ ]", "zoom in, whole run, earlier, later"],
  ["1 2 3 4 5", "messages, raw exchange, attributes, replay and fork, effects"],
  ["x a", "replay or fork from this step; edit its request first"],
  ["p", "playhead at this step"],
  ["P . c", "live run: pause, one step, continue"],
  ["/ > <", "find, next hit, previous hit"],
  ["m d", "mark a run, compare another run with it"],
  ["y", "copy the link"],
  ["q", "back to the list of runs"],
];

/** Bring the modules of a view. @param {string} name */
const bring = async (name) => come.set(name, await VIEWS[name]());

/** A view, when its modules have come. @param {{name: string}} props */
function View({ name }) {
  const [, setCome] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!come.has(name)) bring(name).then(() => setCome(true), () => setProblem("the server was updated: reload this page"));
  }, []);
  return come.has(name) ? html`<${come.get(name)} />` : html`<main><${Waiting} problem=${problem} /></main>`;
}

function App() {
  const [, setPlaced] = useState(0);
  const help = useRef(/** @type {any} */ (null));
  useEffect(() => {
    const placed = () => setPlaced((before) => before + 1);
    addEventListener("placed", placed);
    addEventListener("popstate", placed);
    return () => { removeEventListener("placed", placed); removeEventListener("popstate", placed); };
  }, []);
  const place = here();
  const name = viewOf(place);
  useKeys((key) => {
    if (key === "?") help.current.open ? help.current.close() : help.current.showModal();
    else if (key === "q") go({ view: "runs" });
    else if (key === "/") /** @type {any} */ (document.querySelector("main input[type=search]"))?.focus();
    else return false;
    return true;
  });
  useEffect(() => { document.title = place.run ? `${brief(place.run)} – playhead` : "playhead"; }, [place.run]);
  const follow = (/** @type {any} */ event) => {
    const link = event.target.closest?.("a");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || link.origin !== location.origin) return;
    event.preventDefault();
    history.pushState(null, "", link.href);
    dispatchEvent(new Event("placed"));
  };
  useEffect(() => {
    addEventListener("click", follow);
    return () => removeEventListener("click", follow);
  }, []);
  const current = (/** @type {string} */ view) => (view === name ? "page" : undefined);
  return html`<header><h1 class="name"><a href="/">playhead</a></h1><nav aria-label="views">
      ${["runs", "find", "compare", "operations"].map((view) => html`<a key=${view} aria-current=${current(view)} href=${link({ view })}>${view}</a>`)}</nav>
      ${place.run && OF_A_RUN.includes(name) && html`<nav aria-label="views of the run"><span class="quiet">${brief(place.run)}:</span>
      ${OF_A_RUN.map((view) => html`<a key=${view} aria-current=${current(view)} href=${link({ view, run: place.run })}>${view}</a>`)}</nav>`}
      <button aria-label="keys" onClick=${() => help.current.showModal()}>?</button></header>
    <${View} name=${name} key=${`${name} ${place.run ?? ""}`} />
    <dialog ref=${help} aria-label="keys"><table><tbody>${KEYS.map(([keys, what]) => html`<tr key=${keys}><th scope="row">${keys}</th><td>${what}</td></tr>`)}</tbody></table>
      <button onClick=${() => help.current.close()}>close</button></dialog>`;
}

await bring(viewOf(here()));
// Then those of the others, so that a view opened by a key hears the next one. What fails is brought when it is looked at.
answered.then(() => Object.keys(VIEWS).forEach((name) => bring(name).catch(() => {})));
render(html`<${App} />`, document.body);
