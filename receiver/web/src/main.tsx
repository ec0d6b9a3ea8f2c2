// Which view is shown, the header, and the keys that work in all views.
import "@mantine/core/styles/baseline.css";
import "@mantine/core/styles/default-css-variables.css";
import "@mantine/core/styles/global.css";
import "@mantine/core/styles/UnstyledButton.css";
import "@mantine/core/styles/Button.css";
import "@mantine/core/styles/ActionIcon.css";
import "@mantine/core/styles/Badge.css";
import "@mantine/core/styles/Loader.css";
import "@mantine/core/styles/Paper.css";
import "@mantine/core/styles/Kbd.css";
import "./style.css";
import { ActionIcon, createTheme, Kbd, MantineProvider } from "@mantine/core";
import { Activity, CircleHelp, Columns2, History, List, ListTree, MessageSquareText, MessagesSquare, Moon, Radio, Search, Sun, Waypoints } from "lucide-react";
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { go, here, link } from "./address.ts";
import { answered } from "./ahead.ts";
import { useKeys, Waiting } from "./parts.tsx";
import { VIEWS, viewOf } from "./views.ts";
import { brief } from "./words.ts";

/** Views whose modules are loaded. */
const loaded: Map<string, any> = new Map();

const TOP: [string, string, any][] = [["runs", "Runs", List], ["sessions", "Sessions", MessagesSquare], ["live", "Live", Radio], ["find", "Search", Search], ["flow", "Flow", Waypoints], ["compare", "Compare", Columns2], ["operations", "Operations", Activity]];
const OF_A_RUN: [string, string, any][] = [["run", "Steps", ListTree], ["transcript", "Conversation", MessageSquareText], ["playhead", "State", History]];
const SCHEME = "playhead-scheme";

const KEYS = [
  ["j k ↑ ↓", "row below, above"],
  ["s S", "next step, previous step"],
  ["n", "next sibling"],
  ["f", "parent"],
  ["e E", "next failure, previous failure"],
  ["g G", "first, last"],
  ["h l ← →", "collapse, expand; in the state view: previous step, next step"],
  ["t", "steps, tree, all spans"],
  ["- *", "collapse all, expand all"],
  ["+ 0 [ ]", "zoom in, whole run, earlier, later"],
  ["1 2 3 4 5 6", "messages, raw, attributes, replay and fork, effects, logs"],
  ["o i", "overview of the run, its findings"],
  ["x a", "replay or fork from this step; edit its request first"],
  ["p", "state at this step"],
  ["P . c", "live run: pause, one step, continue"],
  ["/ > <", "find, next match, previous match"],
  ["m d", "pick a run, compare another run with it"],
  ["y", "copy the link"],
  ["q", "back to the list of runs"],
];

/** Load the modules of a view. */
const load = async (name: string) => { if (!loaded.has(name)) loaded.set(name, await VIEWS[name]()); };

/** A view, when its modules are loaded. */
function View({ name }: { name: string }) {
  const [, setLoaded] = useState(loaded.has(name));
  const [problem, setProblem] = useState("");
  // Also if the modules have arrived since this was drawn: nothing else draws it again.
  useEffect(() => { load(name).then(() => setLoaded(true), () => setProblem("the server was updated: reload this page")); }, []);
  const Loaded = loaded.get(name);
  return Loaded ? <Loaded /> : <main><Waiting problem={problem} /></main>;
}

/** Follow the system until a person chooses. */
function useScheme(): ["light" | "dark", (scheme: "light" | "dark") => void] {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const [system, setSystem] = useState(query.matches);
  const [chosen, setChosen] = useState(localStorage.getItem(SCHEME));
  useEffect(() => {
    const changed = () => setSystem(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  const scheme = chosen === "dark" || (chosen !== "light" && system) ? "dark" : "light";
  useEffect(() => { document.documentElement.dataset.mantineColorScheme = scheme; dispatchEvent(new Event("scheme")); }, [scheme]);
  return [scheme, (value) => { localStorage.setItem(SCHEME, value); setChosen(value); }];
}

const theme = createTheme({ primaryColor: "blue", defaultRadius: "sm", cursorType: "pointer", focusRing: "auto" });

function App() {
  const [, setPlaced] = useState(0);
  const help = useRef<any>(null);
  const [scheme, setScheme] = useScheme();
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
    else if (key === "/") document.querySelector<HTMLElement>("main input[type=search]")?.focus();
    else return false;
    return true;
  });
  useEffect(() => { document.title = place.run ? `${brief(place.run)} – playhead` : "playhead"; }, [place.run]);
  const follow = (event: any) => {
    const anchor = event.target.closest?.("a");
    if (!anchor || anchor.hasAttribute("download") || event.button || event.ctrlKey || event.metaKey || event.shiftKey || anchor.origin !== location.origin) return;
    event.preventDefault();
    history.pushState(null, "", anchor.href);
    dispatchEvent(new Event("placed"));
  };
  useEffect(() => {
    addEventListener("click", follow);
    return () => removeEventListener("click", follow);
  }, []);
  const current = (view: string) => (view === name ? "page" : undefined);
  /** The step that is looked at goes along from view to view. */
  const step = Number(place.step ?? place.after) || "";
  const along = (view: string) => link({ view, run: place.run, ...(view === "playhead" ? { after: step } : view === "run" ? { step } : {}) });
  const ofRun = place.run && OF_A_RUN.some(([view]) => view === name);
  return <MantineProvider theme={theme} forceColorScheme={scheme} withCssVariables={false} withGlobalClasses={false} deduplicateCssVariables={false}>
    <header><h1 class="name"><a href="/"><span class="logo" aria-hidden="true"></span>playhead</a></h1><nav aria-label="views">
      {TOP.map(([view, label, Icon]) => <a key={view} aria-label={label} title={label} aria-current={current(view)} href={link({ view })}><Icon size={15} aria-hidden="true" /><span>{label}</span></a>)}</nav>
      {ofRun && <nav aria-label="views of the run" class="of-run"><span class="quiet" title={brief(place.run)}>{brief(place.run, 40)}</span>
        {OF_A_RUN.map(([view, label, Icon]) => <a key={view} aria-label={label} title={label} aria-current={current(view)} href={along(view)}><Icon size={15} aria-hidden="true" /><span>{label}</span></a>)}</nav>}
      <span class="tools"><ActionIcon variant="subtle" color="gray" aria-label={scheme === "dark" ? "light colours" : "dark colours"} onClick={() => setScheme(scheme === "dark" ? "light" : "dark")}>{scheme === "dark" ? <Sun size={16} /> : <Moon size={16} />}</ActionIcon>
        <ActionIcon variant="subtle" color="gray" aria-label="keys" onClick={() => help.current.showModal()}><CircleHelp size={16} /></ActionIcon></span></header>
    <View name={name} key={`${name} ${place.run ?? ""}`} />
    <dialog ref={help} aria-label="keys"><h2>Keys</h2><table><tbody>{KEYS.map(([keys, what]) => <tr key={keys}><th scope="row">{keys.split(" ").map((key) => <Kbd key={key}>{key}</Kbd>)}</th><td>{what}</td></tr>)}</tbody></table>
      <button onClick={() => help.current.close()}>Close</button></dialog>
  </MantineProvider>;
}

await load(viewOf(here()));
// Then those of the others, so that a view opened by a key receives the next one. A view that fails is loaded when it is looked at.
answered.then(() => Object.keys(VIEWS).forEach((name) => load(name).catch(() => {})));
render(<App />, document.body);
