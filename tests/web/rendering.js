/**
 * Looks at what the renderer makes of a text, for test_markdown.py.
 */

import { parse } from "/markdown.js";
import { renderMarkdown, renderPlain } from "/render.js";
import { cutBefore, visible } from "/text.js";

// All that agents' text may ever become; each attribute with the values it may have.
const ANY = /^[^]*$/;
const DIR = /^(auto|ltr)$/;
const ALLOWED = {
  p: {}, br: {}, wbr: {}, h4: {}, h5: {}, h6: {}, strong: {}, em: {}, del: {}, code: {}, ul: {}, blockquote: {}, hr: {},
  table: {}, thead: {}, tbody: {}, tr: {}, figcaption: {},
  td: { class: /^(left|center|right)$/ },
  th: { class: /^(left|center|right)$/, scope: /^col$/ },
  figure: { class: /^code$/ },
  pre: { tabindex: /^0$/ },
  button: { class: /^(copy|more)$/, type: /^button$/ },
  ol: { start: /^[0-9]+$/ },
  li: { class: /^task$/ },
  div: { class: /^(table|plain)$/, tabindex: /^(0|-1)$/, role: /^group$/, "aria-label": /^Table$/ },
  span: { class: /^(odd|host|box)$/, title: ANY, role: /^img$/, "aria-label": /^(done|to do)$/ },
  a: {
    href: /^(https?:\/\/[!-~]+|mailto:[!-~]+)$/,
    title: /^(https?:\/\/[!-~]+|mailto:[!-~]+)$/,
    target: /^_blank$/,
    rel: /^noopener noreferrer nofollow$/,
  },
};
// The same on every element of its kind, so the tables of expected markup leave them out.
const CONSTANT = ["dir", "target", "rel", "tabindex", "type", "scope", "role", "aria-label"];
const DEEPEST = 16 * 2 + 16 + 8;

const SIGNS = [
  "*", "**", "***", "_", "__", "~~", "`", "``", "```", "~~~", "[", "![", "]", "](https://h.i)", "](javascript:f)", "(", ")",
  "<", ">", "> ", "- ", "* ", "1. ", "[ ] ", "[x] ", "# ", "## ", "---", "|", "|-|-|", "|:-:|", "\\", "\\|", "\n", "\n", "\n",
  "\n\n", "  ", "    ", "\t", " ", " ", "\r\n", "https://h.i/", "<https://h.i>", "<b>", "<img src=x onerror=f()>", "&lt;",
  "\u202e", "\u200b", "\u200d", "\ufe0f", "\0", "\x1b[31m", "\ud800", "\udc00", "\u0301\u0301\u0301\u0301", "😀", "中", "。",
];

/** Shows a text and tells what came of it. */
export function show(source, options) {
  return look(renderMarkdown(source, options));
}

/** Shows one text after the other. */
export function showEach(sources) {
  return sources.map((source) => show(source));
}

export function showPlain(source, options) {
  return look(renderPlain(source, options));
}

function look(fragment) {
  const main = document.querySelector("main");
  main.replaceChildren(fragment);
  const titles = [...main.querySelectorAll(".odd")].map((odd) => odd.title);
  return { html: plainHtml(main), text: main.textContent, strays: straysIn(main), titles };
}

export { cutBefore, visible };

function plainHtml(main) {
  const copy = main.cloneNode(true);
  for (const element of copy.querySelectorAll("*")) CONSTANT.forEach((name) => element.removeAttribute(name));
  for (const link of copy.querySelectorAll("a")) link.removeAttribute("title");
  return copy.innerHTML;
}

/** Lists what is not on the list of allowed elements and attributes. */
export function straysIn(root) {
  const strays = [];
  for (const element of root.querySelectorAll("*")) {
    const allowed = ALLOWED[element.localName];
    if (!allowed) strays.push(element.localName);
    for (const { name, value } of element.attributes) {
      const values = name === "dir" ? DIR : allowed?.[name];
      if (!values?.test(value)) strays.push(`${element.localName} ${name}=${value}`);
    }
  }
  return strays;
}

/** Renders random mixes of markup; returns those that break a law, with the law. */
export function fuzz(seed, count) {
  const random = generator(seed);
  const broken = [];
  for (let round = 0; round < count && broken.length < 5; round += 1) {
    const source = mixOf(random);
    const law = brokenLaw(source);
    if (law) broken.push([law, source]);
  }
  return broken;
}

function brokenLaw(source) {
  const holder = document.createElement("main");
  try {
    holder.append(renderMarkdown(source));
  } catch (error) {
    return `threw ${error}`;
  }
  const strays = straysIn(holder);
  if (strays.length > 0) return `stray ${strays}`;
  if (holder.querySelector("a a")) return "a link in a link";
  if (depthOf(holder) > DEEPEST) return `${depthOf(holder)} levels deep`;
  if (`${holder.textContent.match(WORDS)}` !== `${source.match(WORDS)}`) return `words lost: ${holder.textContent}`;
  return null;
}

// Words that no sign can be part of, numbered, so a lost or moved one shows.
const WORDS = /Q[a-p]+Z/g;

function mixOf(random) {
  const parts = [];
  for (let size = 2 + (random() % 40), word = 0; size > 0; size -= 1) {
    if (random() % 3 > 0) parts.push(SIGNS[random() % SIGNS.length]);
    else parts.push(`Q${(word++).toString(16).replace(/./g, (digit) => "abcdefghijklmnop"[parseInt(digit, 16)])}Z`);
    if (random() % 5 === 0) parts.push(parts.at(-1));
  }
  return parts.join("");
}

function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 8;
  };
}

function depthOf(element) {
  let deepest = 0;
  for (const child of element.children) deepest = Math.max(deepest, depthOf(child));
  return deepest + 1;
}

export function deepest(source) {
  const holder = document.createElement("main");
  holder.append(renderMarkdown(source, { limit: Infinity }));
  return depthOf(holder);
}

/** Parses a piece again and again, up to `size` characters. */
export function parseMany(piece, size) {
  parse(piece.repeat(size / piece.length));
}

/** Presses "Show all"; tells how many slices a frame added at most, once no more come. */
export async function showAll(source, limit) {
  showPlain(source, { limit });
  const main = document.querySelector("main");
  const frames = [0];
  const count = (records) => records.forEach((record) => (frames[frames.length - 1] += record.addedNodes.length));
  const observer = new MutationObserver(count);
  observer.observe(main, { childList: true });
  main.querySelector("button.more").click();
  do {
    await null; // lets the observer count what came before this frame
    frames.push(0);
    await new Promise(requestAnimationFrame);
  } while (frames.at(-1) > 0);
  observer.disconnect();
  const slices = [...main.querySelectorAll(".plain")].map((slice) => slice.textContent.replaceAll("U+202E", ".").length);
  return { text: main.textContent, most: Math.max(...frames), longest: Math.max(...slices) };
}

/** Lays a text out that is `times` a piece, as markdown and as it is; tells how many elements they became. */
export function layOut(piece, times) {
  const source = piece.repeat(times);
  const main = document.querySelector("main");
  let count = 0;
  for (const render of [renderMarkdown, renderPlain]) {
    main.replaceChildren(render(source));
    main.getBoundingClientRect();
    count += main.querySelectorAll("*").length;
  }
  main.replaceChildren();
  return count;
}
