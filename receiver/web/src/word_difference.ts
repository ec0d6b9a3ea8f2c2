// What differs between two texts, word by word, by the library jsdiff. Nothing here needs a browser.
import { diffLines, diffWordsWithSpace } from "diff";

const MOST_MS = 200;
const CONTEXT_LINES = 2;

export interface Change {
  how: "same" | "gone" | "new";
  text: string;
}

/** Two texts as words that are the same, gone or new. A comparison that takes long ends with both texts as wholes. */
export function wordDiff(left: string, right: string): Change[] {
  const found = diffWordsWithSpace(left, right, { timeout: MOST_MS });
  if (!found) return [{ how: "gone" as const, text: left }, { how: "new" as const, text: right }].filter((part) => part.text);
  return found.map(({ added, removed, value }) => ({ how: added ? "new" : removed ? "gone" : "same", text: value }));
}

/** Two texts without the lines that are far from a change: `…` stands for what is left out. */
export function changedLines(before: string, now: string) {
  const found = diffLines(before, now, { timeout: MOST_MS });
  if (!found) return { left: before, right: now };
  const sides = { left: "", right: "" };
  found.forEach(({ added, removed, value }, at) => {
    const text = added || removed ? value : around(value, at > 0, at < found.length - 1);
    if (!added) sides.left += text;
    if (!removed) sides.right += text;
  });
  return sides;
}

/** The lines of a same part that are next to a change. */
function around(text: string, after: boolean, before: boolean) {
  const lines = text.split("\n");
  const end = lines.at(-1) === "" ? lines.pop() : undefined;
  const most = CONTEXT_LINES * (Number(after) + Number(before));
  if (lines.length <= most + 1) return text;
  const kept = [...(after ? lines.slice(0, CONTEXT_LINES) : []), "…", ...(before ? lines.slice(-CONTEXT_LINES) : [])];
  return kept.join("\n") + (end === undefined ? "" : "\n");
}
