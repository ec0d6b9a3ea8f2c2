// An icon for each kind of step, in the colour of the kind.
import { Bot, Boxes, CircleAlert, Globe, Search, Sparkles, UserRound, Wrench } from "lucide-react";

const ICONS: Record<string, any> = { model: Sparkles, tool: Wrench, http: Globe, agent: Bot, retrieval: Search, error: CircleAlert, human: UserRound, other: Boxes };
/** The icon of a kind; the text beside it says the same, so readers skip it. */
export function KindIcon({ kind, size = 13 }: { kind: string; size?: number }) {
  const Icon = ICONS[kind] ?? Boxes;
  return <Icon size={size} className={`k-${kind}`} aria-hidden="true" />;
}
