// What differs between two texts, word by word. Nothing here needs a browser.

const MOST_WORDS = 2000;

/**
 * Two texts as words that are the same, gone or new.
 */
export function wordDiff(left: string, right: string): {how: "same" | "gone" | "new", text: string}[] {
  const one = left.split(/(\s+)/);
  const other = right.split(/(\s+)/);
  let head = 0;
  while (head < one.length && head < other.length && one[head] === other[head]) head++;
  let tail = 0;
  while (tail < one.length - head && tail < other.length - head && one.at(-1 - tail) === other.at(-1 - tail)) tail++;
  const gone = one.slice(head, one.length - tail);
  const came = other.slice(head, other.length - tail);
  const found: {how: "same" | "gone" | "new", text: string}[] = [{ how: "same", text: one.slice(0, head).join("") }];
  if (gone.length > MOST_WORDS || came.length > MOST_WORDS)
    found.push({ how: "gone", text: gone.join("") }, { how: "new", text: came.join("") });
  else found.push(...aligned(gone, came));
  found.push({ how: "same", text: one.slice(one.length - tail).join("") });
  return found.filter((part) => part.text);
}

function aligned(one: string[], other: string[]): {how: "same" | "gone" | "new", text: string}[] {
  const wide = other.length + 1;
  const long = new Uint16Array((one.length + 1) * wide);
  for (let at = one.length - 1; at >= 0; at--)
    for (let to = other.length - 1; to >= 0; to--)
      long[at * wide + to] = one[at] === other[to]
        ? long[(at + 1) * wide + to + 1] + 1
        : Math.max(long[(at + 1) * wide + to], long[at * wide + to + 1]);
  const found: {how: "same" | "gone" | "new", text: string}[] = [];
  const add = (how: "same" | "gone" | "new", text: string) => {
    const before = found.at(-1);
    if (before?.how === how) before.text += text;
    else found.push({ how, text });
  };
  let at = 0;
  let to = 0;
  while (at < one.length || to < other.length) {
    if (at < one.length && to < other.length && one[at] === other[to]) add("same", one[at++] && other[to++]);
    else if (to >= other.length || (at < one.length && long[(at + 1) * wide + to] >= long[at * wide + to + 1])) add("gone", one[at++]);
    else add("new", other[to++]);
  }
  return found;
}

/**
 * Two texts without the lines that they begin and end with alike.
 */
export function changedLines(before: string, now: string) {
  const one = before.split("\n");
  const other = now.split("\n");
  let head = 0;
  while (head < one.length && head < other.length && one[head] === other[head]) head++;
  let tail = 0;
  while (tail < one.length - head && tail < other.length - head && one.at(-1 - tail) === other.at(-1 - tail)) tail++;
  return { left: one.slice(head, one.length - tail).join("\n"), right: other.slice(head, other.length - tail).join("\n") };
}
