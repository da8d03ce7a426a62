/**
 * Looks at what the renderer makes of a text, for test_markdown.py.
 */

import { renderPlain, renderTokens } from "/render.js";
import { cutBefore, visible } from "/text.js";

// All that agents' text may ever become; each attribute with the values it may have.
const ANY = /^[^]*$/;
const DIR = /^(auto|ltr)$/;
const ALLOWED = {
  p: {}, br: {}, wbr: {}, h3: {}, h4: {}, h5: {}, h6: {}, strong: {}, em: {}, del: {}, code: {}, ul: {}, blockquote: {}, hr: {},
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
const DEEPEST = 16 + 16 + 8;

/** Shows a text and tells what came of it. */
export function show(source, markdown) {
  return look(renderTokens(source, markdown));
}

/** Shows one text after the other. */
export function showEach(sources) {
  return sources.map(([source, markdown]) => show(source, markdown));
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
export function fuzz(mixes) {
  return mixes.map(([source, markdown]) => [brokenLaw(source, markdown), source]).filter(([law]) => law);
}

function brokenLaw(source, markdown) {
  const holder = document.createElement("main");
  try {
    holder.append(renderTokens(source, markdown));
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

function depthOf(element) {
  let deepest = 0;
  for (const child of element.children) deepest = Math.max(deepest, depthOf(child));
  return deepest + 1;
}

export function deepest(source, markdown) {
  const holder = document.createElement("main");
  holder.append(renderTokens(source, markdown));
  return depthOf(holder);
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

/** Lays a text out, as markdown and as it is; tells how many elements they became. */
export function layOut(source, markdown) {
  const main = document.querySelector("main");
  let count = 0;
  for (const shown of [renderTokens(source, markdown), renderPlain(source)]) {
    main.replaceChildren(shown);
    main.getBoundingClientRect();
    count += main.querySelectorAll("*").length;
  }
  main.replaceChildren();
  return count;
}
