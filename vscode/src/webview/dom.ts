/** The little of a framework that this page needs. */

type Child = Node | string | null;
type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

/**
 * Make an element; an attribute that is a function listens to the event of its name.
 *
 * What cannot be pressed is `aria-disabled` and never `disabled`: a button that is disabled loses
 * the focus, and whoever works by keyboard starts again at the top of the page.
 */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, (event) => {
        if (name !== "click" || element.ariaDisabled !== "true") value(event);
      });
    }
    else if (typeof value === "string") element.setAttribute(name, value);
    else if (value) element.setAttribute(name, "");
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const shown = new WeakMap<Element, string>();

/**
 * Fill an element anew where what it shows has changed. The focus stays: where it was on a child
 * of a `data-key`, it goes to the new one of that key.
 */
export function fill(element: Element, value: unknown, children: () => Child[]): void {
  const text = JSON.stringify(value);
  if (shown.get(element) === text) return;
  shown.set(element, text);
  const before = focused();
  const key = element.contains(before) ? before?.getAttribute("data-key") : null;
  element.replaceChildren(...children().filter((child) => child !== null));
  if (key) element.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

/** Let a button be pressed or not; it keeps the focus. */
export function allow(button: HTMLElement, isAllowed: boolean): void {
  button.ariaDisabled = String(!isAllowed);
}

/** Return what has the focus; nothing while the person is elsewhere, whose focus is not taken. */
export function focused(): Element | null {
  const element = document.hasFocus() ? document.activeElement : null;
  return element === document.body ? null : element;
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
