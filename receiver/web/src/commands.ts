// Commands to copy into a shell. Nothing here needs a browser.
import { HIDDEN } from "./words.ts";

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;
/** What an edit may begin with. */
const ROOT = /^(request|response|tool_result|function|state)\b/;

/**
 * A word as bash and zsh read it back: what controls, reverses or hides is written as an escape.
 */
export function word(text: string) {
  const kept = text.toWellFormed();
  if (PLAIN.test(kept)) return kept;
  if (!/[\n\t]/.test(kept) && kept.search(HIDDEN) < 0) return `'${kept.replaceAll("'", `'\\''`)}'`;
  const escaped = kept
    .replace(/[\\']/g, "\\$&")
    .replaceAll("\n", "\\n")
    .replaceAll("\t", "\\t")
    .replace(HIDDEN, (found) => {
      const code = found.codePointAt(0) ?? 0;
      return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
    });
  return `$'${escaped}'`;
}

/**
 * The command that plays a run again from its tape, shown from a step on.
 * @param step 0: from its beginning
 */
export function replayCommand(run: string, step: number) {
  return ["playhead", "replay", word(run), ...(step ? ["--from", `${step}`] : [])].join(" ");
}

/**
 * The command that goes back to a step, changes something there, and goes on for real.
 * @param step 0: as far as the program agrees with its tape
 * @param edits those without a path are left out
 * @param offline whether nothing goes to the world
 */
export function forkCommand(run: string, step: number, edits: {path: string, value: string}[], offline: boolean) {
  const changed = edits.filter(({ path }) => path).map(({ path, value }) => `--edit ${word(`${path}=${value}`)}`);
  return ["playhead", "fork", word(step ? `${run}:${step}` : run), ...changed, ...(offline ? ["--offline"] : [])].join(" ");
}

/**
 * An edit as it is typed for `playhead fork --edit`, as the API takes it; null where nothing is said.
 */
export function editOf(path: string, value: string) {
  if (!path) return null;
  const add = path.startsWith("+");
  const bare = add ? path.slice(1) : path;
  const remove = !add && bare.endsWith("!");
  const name = (remove ? bare.slice(0, -1) : bare).trim();
  return { path: ROOT.test(name) ? name : `request.${name}`, value: remove ? null : meant(value), remove, add };
}

/** A value as it is typed: JSON where it is that, else text. */
function meant(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
