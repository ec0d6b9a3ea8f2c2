// Markdown as elements. It makes no HTML of its text, loads no images, and links lead nowhere: what a model writes is untrusted.
import Markdown from "react-markdown";
import remarkGfm from "remark-gfm";
import { shown } from "./words.ts";

const COMPONENTS: any = {
  a: ({ href, children }: any) => <span>{children}{href && <span class="quiet"> ({shown(href)})</span>}</span>,
  img: ({ alt, src }: any) => <span class="quiet">image: {shown(alt || src)}</span>,
  input: ({ checked }: any) => <span>{checked ? "☑ " : "☐ "}</span>,
  pre: ({ children }: any) => <pre tabIndex={0}>{children}</pre>,
};

export default function Rendered({ text }: { text: string }) {
  return <div class="markdown"><Markdown remarkPlugins={[remarkGfm]} components={COMPONENTS} urlTransform={(url) => url}>{shown(text)}</Markdown></div>;
}
