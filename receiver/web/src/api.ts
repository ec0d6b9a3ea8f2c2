// Asks the query API. A token came once in the fragment of the address and is kept for this session.

const KEPT = "playhead-token";
const GIVEN = "playhead-tokens";

/** Take the token out of the address, so that no link or history holds it. @returns whether there was one */
export function keepToken(): boolean {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return false;
  use(given);
  sessionStorage.setItem(GIVEN, JSON.stringify([...new Set([...tokens(), given])]));
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

/** Ask with this token from now on. */
export function use(token: string) {
  sessionStorage.setItem(KEPT, token);
}

/** The tokens that were handed over in this session. */
export function tokens(): string[] {
  return JSON.parse(sessionStorage.getItem(GIVEN) ?? "[]");
}

/** Whose a token is, and whether it is the one that is asked with. */
export async function holder(token: string) {
  const { tenant } = await (await answered("/v1/caller", undefined, "GET", undefined, token)).json();
  return { token, tenant, current: token === sessionStorage.getItem(KEPT) };
}

/** A refusal, with what the API says of it. */
export class Refused extends Error {
  status: number;

  constructor(status: number, said: string) {
    super(said);
    this.status = status;
  }
}

/** Answers that were asked for ahead, by their address. */
const ahead: Map<string, Promise<Response>> = new Map();

/** @param path below /v1/ */
function addressOf(path: string, wanted: Record<string, string | number>) {
  const query = new URLSearchParams(Object.entries(wanted).map(([name, value]) => [name, `${value}`]));
  return `/v1/${path}${query.size ? `?${query}` : ""}`;
}

/**
 * Ask for what will be asked for once.
 * @param path below /v1/
 *
 * @returns done when there is an answer; a refusal is for who asks
 */
export function askAhead(path: string, wanted: Record<string, string | number>): Promise<unknown> {
  const address = addressOf(path, wanted);
  const answer = answered(address);
  ahead.set(address, answer);
  return answer.catch(() => {});
}

/**
 * An answer of the query API.
 * @param path below /v1/
 */
export async function ask(path: string, wanted: Record<string, string | number> = {}, signal?: AbortSignal): Promise<any> {
  const address = addressOf(path, wanted);
  const answer = ahead.get(address) ?? answered(address, signal);
  ahead.delete(address);
  return (await answer).json();
}

/**
 * An answer that comes bit by bit.
 * @param path below /v1/
 */
export async function stream(path: string, wanted: Record<string, string>, signal: AbortSignal) {
  const { body } = await answered(`/v1/${path}?${new URLSearchParams(wanted)}`, signal);
  if (!body) throw new Error("empty response");
  return body.getReader();
}

/** An answer that is text. */
export async function askText(path: string, signal?: AbortSignal) {
  return (await answered(`/${path}`, signal)).text();
}

/**
 * Order something of the query API.
 * @param path below /v1/ @param body sent as JSON
 */
export async function order(method: "POST" | "PUT" | "DELETE", path: string, body?: any): Promise<any> {
  return (await answered(`/v1/${path}`, undefined, method, body)).json();
}

async function answered(address: string, signal?: AbortSignal, method: string = "GET", body: any = undefined, token: string | null = sessionStorage.getItem(KEPT)) {
  const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
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

/** A part of a path. */
export const part = (name: string) => encodeURIComponent(name);
