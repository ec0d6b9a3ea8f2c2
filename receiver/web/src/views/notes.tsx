// What people say of a run or a step: right or wrong, a note, a score.
import { Check, MessageSquarePlus, ThumbsDown, ThumbsUp, X } from "lucide-react";
import { useLayoutEffect, useState } from "preact/hooks";
import { order } from "../api.ts";
import { useAsked } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { brief, date, shown } from "../words.ts";

const AUTHOR = "playhead-author";
const VERDICTS: [string, string, any][] = [["right", "Right", ThumbsUp], ["wrong", "Wrong", ThumbsDown]];

export interface NoteBook {
  notes: any[];
  problem: string;
  add: (note: any) => Promise<boolean>;
  withdraw: (id: string) => Promise<boolean>;
}

/** The notes of a run, and how to change them. */
export function useNotes(run: string): NoteBook {
  const path = `${pathOf(run)}/notes`;
  const asked = useAsked(path);
  const [changed, setChanged] = useState<{ path: string; notes: any[] } | null>(null);
  const [problem, setProblem] = useState("");
  const ordered = (answer: Promise<any>) => answer.then(({ notes }) => { setChanged({ path, notes }); setProblem(""); return true; }, (refused) => { setProblem(refused.message); return false; });
  return {
    notes: (changed?.path === path ? changed.notes : asked.value?.notes) ?? [],
    problem,
    add: (note) => ordered(order("POST", path, { author: localStorage.getItem(AUTHOR) ?? "", ...note })),
    withdraw: (id) => ordered(order("DELETE", `${path}/${id}`)),
  };
}

/** Results of evaluations that are no notes. */
export function withoutNotes(scores: any[], notes: any[]): any[] {
  const known = new Set(notes.map((one) => `${one.time_ns} ${one.name}`));
  return scores.filter((one) => !known.has(`${one.time_ns} ${one.name}`));
}

/** @param step null: the notes about the run as a whole */
export function Notes({ book, step }: { book: NoteBook; step: number | null }) {
  const [writing, setWriting] = useState(false);
  useLayoutEffect(() => setWriting(false), [step]);
  const own = book.notes.filter((one) => one.step === step);
  return <section class="notes" aria-label={step === null ? "notes about the run" : "notes about the step"}>
    <div class="bar">{VERDICTS.map(([label, name, Icon]) => {
      const mine = own.find((one) => one.label === label && one.own);
      return <button key={label} name={`mark-${label}`} aria-pressed={Boolean(mine)} onClick={() => (mine ? book.withdraw(mine.id) : book.add({ step, label }))}><Icon size={13} />{name}</button>;
    })}<button name="write-note" aria-expanded={writing} onClick={() => setWriting(!writing)}><MessageSquarePlus size={13} />Note or score</button></div>
    {writing && <Writing add={(note) => book.add({ step, ...note }).then((done) => setWriting(!done))} />}
    {book.problem && <p class="problem" role="alert">{shown(book.problem)}</p>}
    {own.map((one) => <div class="said human" key={one.id}><div class="who">{brief(one.author || "a person", 60)} <span class="quiet">{date(one.time_ns)}</span>
      {one.label && <span class={`badge ${one.label === "right" ? "good" : "bad"}`}>{brief(one.label, 40)}</span>}
      {one.value !== null && one.label === null && <span class="badge">{brief(one.name, 60)} {one.value}</span>}
      {one.own && <button class="end link" aria-label="withdraw the note" onClick={() => book.withdraw(one.id)}><X size={13} /></button>}</div>
      {one.text && <p class="note-text">{shown(one.text)}</p>}</div>)}</section>;
}

/** A form for a text, a score, or both. */
function Writing({ add }: { add: (note: any) => void }) {
  const [typed, setTyped] = useState({ text: "", name: "", value: "" });
  const [author, setAuthor] = useState(localStorage.getItem(AUTHOR) ?? "");
  const field = (name: "text" | "name" | "value") => ({ name: `note-${name}`, value: typed[name], onInput: (event: any) => setTyped({ ...typed, [name]: event.target.value }) });
  const number = typed.value.trim() === "" ? null : Number(typed.value);
  const wrong = number !== null && (!Number.isFinite(number) || !typed.name);
  const sent = (event: any) => {
    event.preventDefault();
    localStorage.setItem(AUTHOR, author);
    add({ text: typed.text, name: typed.name, value: number });
  };
  return <form class="note-form" onSubmit={sent}><textarea {...field("text")} rows={3} class="prose" aria-label="note" placeholder="What is right or wrong here?"></textarea>
    <div class="bar"><input {...field("name")} aria-label="name of the score" placeholder="score, e.g. tone" /><input {...field("value")} aria-label="value of the score" placeholder="0.5" inputMode="decimal" />
      <input name="note-author" aria-label="your name" placeholder="your name" value={author} onInput={(event: any) => setAuthor(event.target.value)} />
      <button class="main" name="add-note" disabled={wrong || (!typed.text.trim() && number === null)}><Check size={13} />Add</button></div>
    {wrong && <p class="note">a score has a name and a number</p>}</form>;
}
