// A request of a model as the parts of a form: settings, instructions, messages, tools. Nothing here needs a browser.

/** Names that providers give to the list of messages, and to the instructions before it. */
const LISTS = ["messages", "input", "contents"];
const INSTRUCTIONS = ["system", "instructions"];
const TEXT_KEYS = ["content", "text"];
/** Numbers with more digits than JavaScript keeps. */
const LONG_NUMBER = /[:[,]\s*-?\d{16,}/;

/** A place in a JSON value. */
export type Path = (string | number)[];

export interface FormField {
  path: Path;
  label: string;
  /** How it is edited: as a line, as a text, or as JSON. */
  kind: "line" | "text" | "json";
  value: any;
}

export interface FormPart {
  title: "Settings" | "Instructions" | "Messages" | "Tools";
  /** Of a list: its place, so that items are added and removed. */
  list?: Path;
  items: { label: string; path?: Path; fields: FormField[] }[];
}

/** The request; undefined: it has no form. */
export function formRequest(text: string): Record<string, any> | undefined {
  if (LONG_NUMBER.test(text)) return undefined;
  try {
    const found = JSON.parse(text);
    return found && typeof found === "object" && !Array.isArray(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

/** What a form shows of a request. Parts that it does not know stay as they are. */
export function partsOf(request: Record<string, any>): FormPart[] {
  const settings = Object.entries(request).filter(([name, value]) => (value === null || typeof value !== "object") && !INSTRUCTIONS.includes(name) && !LISTS.includes(name));
  const parts: FormPart[] = [{ title: "Settings", items: [{ label: "", fields: settings.map(([name, value]) => ({ path: [name], label: name, kind: "line", value })) }] }];
  const instructions = INSTRUCTIONS.filter((name) => request[name] !== undefined);
  if (instructions.length) parts.push({ title: "Instructions", items: [{ label: "", fields: instructions.map((name) => fieldOf([name], name, request[name])) }] });
  const list = LISTS.find((name) => request[name] !== undefined);
  if (list && typeof request[list] === "string") parts.push({ title: "Messages", items: [{ label: "", fields: [fieldOf([list], list, request[list])] }] });
  else if (list && Array.isArray(request[list])) parts.push({ title: "Messages", list: [list], items: request[list].map((one: any, at: number) => ({ label: one?.role ?? one?.type ?? "message", path: [list, at], fields: messageFields([list, at], one) })) });
  if (Array.isArray(request.tools)) parts.push({ title: "Tools", list: ["tools"], items: request.tools.map((one: any, at: number) => ({ label: one?.function?.name ?? one?.name ?? "tool", path: ["tools", at], fields: [{ path: ["tools", at], label: "definition", kind: "json", value: one }] })) });
  return parts;
}

function fieldOf(path: Path, label: string, value: any): FormField {
  return { path, label, kind: typeof value === "string" ? "text" : "json", value };
}

/** The texts of a message; the whole message as JSON if it has none. */
function messageFields(path: Path, message: any): FormField[] {
  const fields: FormField[] = [];
  for (const key of [...TEXT_KEYS, "parts"]) {
    const value = message?.[key];
    if (typeof value === "string") fields.push({ path: [...path, key], label: key, kind: "text", value });
    else if (Array.isArray(value))
      value.forEach((part, at) => {
        const text = TEXT_KEYS.find((name) => typeof part?.[name] === "string");
        fields.push(text ? { path: [...path, key, at, text], label: `${part.type ?? key} ${at + 1}`, kind: "text", value: part[text] } : fieldOf([...path, key, at], `${part?.type ?? key} ${at + 1}`, part));
      });
  }
  if (message?.tool_calls) fields.push({ path: [...path, "tool_calls"], label: "tool calls", kind: "json", value: message.tool_calls });
  return fields.length ? fields : [{ path, label: "message", kind: "json", value: message }];
}

/** A copy of a value with another value at a place; undefined: the place is removed. */
export function withValue(whole: any, path: Path, value: any): any {
  if (!path.length) return value;
  const [key, ...rest] = path;
  const copy: any = Array.isArray(whole) ? [...whole] : { ...whole };
  if (rest.length || value !== undefined) copy[key] = withValue(copy[key], rest, value);
  else if (Array.isArray(copy)) copy.splice(key as number, 1);
  else delete copy[key];
  return copy;
}

/** A message to begin with, like the others of its list. */
export function newMessage(list: any[]): any {
  const like = list.findLast((one) => one?.role === "user") ?? {};
  if (Array.isArray(like.parts)) return { role: "user", parts: [{ text: "" }] };
  return { role: "user", content: Array.isArray(like.content) ? [{ type: like.content[0]?.type ?? "text", text: "" }] : "" };
}

/** A setting as it is typed: of the kind that it had, else JSON if it is that, else text. */
export function settingOf(text: string, before: any): any {
  if (typeof before === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
