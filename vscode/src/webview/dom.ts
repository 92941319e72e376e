/** The little of a framework that this page needs. */

type Child = Node | string | null;
type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

/** Make an element; an attribute that is a function listens to the event of its name. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (typeof value === "string") element.setAttribute(name, value);
    else if (value) element.setAttribute(name, "");
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const shown = new WeakMap<Element, string>();

/** Fill an element anew where what it shows has changed, so that the focus is not lost. */
export function fill(element: Element, value: unknown, children: () => Child[]): void {
  const text = JSON.stringify(value);
  if (shown.get(element) === text) return;
  shown.set(element, text);
  element.replaceChildren(...children().filter((child) => child !== null));
}

const parser = new DOMParser();

/** Make an icon of the editor's own set; it only repeats what words beside it say. */
export function icon(svg: string, kind = ""): Node {
  const element = parser.parseFromString(svg, "image/svg+xml").documentElement;
  element.setAttribute("class", `icon ${kind}`);
  element.setAttribute("aria-hidden", "true");
  return document.importNode(element, true);
}

/** Make an input or a select with its label. */
export function field(label: string, input: HTMLElement, ...more: Child[]): HTMLElement {
  input.id ||= `field-${label.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return make("div", { class: "field" }, make("label", { for: input.id }, label), input, ...more);
}
