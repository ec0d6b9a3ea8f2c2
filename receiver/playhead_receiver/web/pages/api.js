// Asks the query API. A token came once in the fragment of the address and is kept for this session.

const KEPT = "playhead-token";
const GIVEN = "playhead-tokens";

/** Take the token out of the address, so that no link or history holds it. @returns {boolean} whether there was one */
export function keepToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return false;
  use(given);
  sessionStorage.setItem(GIVEN, JSON.stringify([...new Set([...tokens(), given])]));
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

/** Ask with this token from now on. @param {string} token */
export function use(token) {
  sessionStorage.setItem(KEPT, token);
}

/** The tokens that were handed over in this session. @returns {string[]} */
export function tokens() {
  return JSON.parse(sessionStorage.getItem(GIVEN) ?? "[]");
}

/** Whose a token is, and whether it is the one that is asked with. @param {string} token */
export async function holder(token) {
  const { tenant } = await (await answered("/v1/caller", undefined, "GET", undefined, token)).json();
  return { token, tenant, current: token === sessionStorage.getItem(KEPT) };
}

/** A refusal, with what the API says of it. */
export class Refused extends Error {
  /** @param {number} status @param {string} said */
  constructor(status, said) {
    super(said);
    this.status = status;
  }
}

/** Answers that were asked for ahead, by their address. @type {Map<string, Promise<Response>>} */
const ahead = new Map();

/** @param {string} path below /v1/ @param {Record<string, string | number>} wanted */
function addressOf(path, wanted) {
  const query = new URLSearchParams(Object.entries(wanted).map(([name, value]) => [name, `${value}`]));
  return `/v1/${path}${query.size ? `?${query}` : ""}`;
}

/**
 * Ask for what will be asked for once.
 * @param {string} path below /v1/
 * @param {Record<string, string | number>} wanted
 * @returns {Promise<unknown>} done when there is an answer; a refusal is for who asks
 */
export function askAhead(path, wanted) {
  const address = addressOf(path, wanted);
  const answer = answered(address);
  ahead.set(address, answer);
  return answer.catch(() => {});
}

/**
 * An answer of the query API.
 * @param {string} path below /v1/
 * @param {Record<string, string | number>} wanted
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function ask(path, wanted = {}, signal) {
  const address = addressOf(path, wanted);
  const answer = ahead.get(address) ?? answered(address, signal);
  ahead.delete(address);
  return (await answer).json();
}

/**
 * An answer that comes bit by bit.
 * @param {string} path below /v1/
 * @param {Record<string, string>} wanted
 * @param {AbortSignal} signal
 */
export async function stream(path, wanted, signal) {
  const { body } = await answered(`/v1/${path}?${new URLSearchParams(wanted)}`, signal);
  if (!body) throw new Error("empty response");
  return body.getReader();
}

/** An answer that is text. @param {string} path @param {AbortSignal} [signal] */
export async function askText(path, signal) {
  return (await answered(`/${path}`, signal)).text();
}

/**
 * Order something of the query API.
 * @param {"POST" | "PUT" | "DELETE"} method @param {string} path below /v1/ @param {any} [body] sent as JSON
 * @returns {Promise<any>}
 */
export async function order(method, path, body) {
  return (await answered(`/v1/${path}`, undefined, method, body)).json();
}

/** @param {string} address @param {AbortSignal} [signal] @param {string} [method] @param {any} [body] @param {string | null} [token] */
async function answered(address, signal, method = "GET", body = undefined, token = sessionStorage.getItem(KEPT)) {
  /** @type {Record<string, string>} */
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["content-type"] = "application/json";
  const answer = await fetch(address, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.ok) return answer;
  let said = `${answer.status} ${answer.statusText}`;
  try {
    const problem = await answer.json();
    said = [problem.title, problem.detail, problem.hint].filter(Boolean).join(": ") || said;
  } catch {
    // no object: its status has to do
  }
  if (answer.status === 401) said += "; open the page with playhead open";
  throw new Refused(answer.status, said);
}

/** A part of a path. @param {string} name */
export const part = (name) => encodeURIComponent(name);
