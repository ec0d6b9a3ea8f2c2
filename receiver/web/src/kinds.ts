// The kind of a span: what its icon and its colour say.

/** Kinds that have a colour of their own. */
export const KINDS = ["model", "tool", "http", "agent", "retrieval"];
const MODEL = /^(chat|generate_content|text_completion)\b/;
const HTTP = /^(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b/;

/** The kind that a name of a span suggests, until its text is there. */
export function kindOf(name: string) {
  if (MODEL.test(name)) return "model";
  if (HTTP.test(name)) return "http";
  if (name.startsWith("execute_tool")) return "tool";
  if (/^(invoke_agent|create_agent|invoke_workflow)\b/.test(name)) return "agent";
  return /^(embeddings|retrieval)\b/.test(name) ? "retrieval" : "other";
}
