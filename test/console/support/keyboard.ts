import type { Locator, Page } from 'playwright-core'

/** What can be read of an element, without using it. */
type SeenElement = Pick<Locator, 'waitFor' | 'innerText' | 'inputValue' | 'count' | 'getAttribute'>

/** A page for someone who has keys only. Each action throws if a pointer, or a program in place of the keys, has used the page. */
export interface Keyboard {
  readonly page: Page
  press(...keys: readonly string[]): Promise<void>
  type(text: string): Promise<void>
  /** Moves with Tab to the element of this name, and throws if the focus is not to be seen on the way. */
  tabTo(name: string | RegExp): Promise<void>
  /** Moves there, and presses Enter. */
  activate(name: string | RegExp): Promise<void>
  /** Goes to a page of the navigation by its key. */
  go(key: string, title: string): Promise<void>
  /** Waits for what is visible. */
  see(what: SeenElement): Promise<void>
  /** Throws if anything but keys has used the page. */
  end(): Promise<void>
}

/** Runs in each page. Text without a key before it was put there by a program; a click with a count is one of a pointer. */
const TRAP = `(() => {
  let keys = 0
  const used = (window.usedWithoutKeys = [])
  const note = event => used.push(event.type + ' on ' + (event.target.id || event.target.tagName || 'the page'))
  for (const type of ['pointerdown', 'mousedown', 'touchstart', 'wheel']) addEventListener(type, note, { capture: true, passive: true })
  addEventListener('click', event => event.detail > 0 && note(event), { capture: true })
  addEventListener('keydown', () => (keys += 1), { capture: true })
  addEventListener('input', event => (keys === 0 ? note(event) : (keys = 0)), { capture: true })
})()`

/** The element with the focus: its name, and whether the reader sees that it has it. */
export interface Focused {
  readonly name: string
  readonly tag: string
  readonly isVisible: boolean
}

/** Runs in the page. A focus is visible as an outline of the element, of a box around it, or of what covers it. */
export const FOCUSED = `(() => {
  let element = document.activeElement
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement
  const text = ids => ids && ids.split(' ').map(id => document.getElementById(id)?.textContent ?? '').join(' ')
  const labels = [...(element.labels ?? [])].map(label => label.textContent).join(' ')
  const name = element.getAttribute('aria-label') || text(element.getAttribute('aria-labelledby')) || labels ||
    element.textContent || element.title || element.placeholder || ''
  const isOutlined = style => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1 && !/^rgba.*, 0\\)$/.test(style.outlineColor)
  const boxes = []
  for (let box = element; box && boxes.length < 6; box = box.parentElement ?? box.getRootNode().host) boxes.push(box)
  const { width, height, bottom, right, top, left } = element.getBoundingClientRect()
  const isInside = width > 0 && height > 0 && bottom > 0 && right > 0 && top < innerHeight && left < innerWidth
  const hasOutline = boxes.some(box => isOutlined(getComputedStyle(box))) || isOutlined(getComputedStyle(element, '::after'))
  return { name: name.replace(/\\s+/g, ' ').trim(), tag: element.tagName, isVisible: isInside && hasOutline }
})()`

/** More elements than a page has, so that Tab has come around. */
const MOST_TABS = 200

/** Watches a page from its next load on. */
export async function byKeyboard(page: Page): Promise<Keyboard> {
  await page.addInitScript(TRAP)
  await page.reload()
  await page.locator('h1').first().waitFor({ state: 'attached' })
  const end = async () => {
    const used = await page.evaluate<readonly string[]>('window.usedWithoutKeys')
    if (used.length > 0) throw new Error(`the page was used without keys: ${used.join(', ')}`)
  }
  const press = async (...keys: readonly string[]) => {
    for (const key of keys) await page.keyboard.press(key)
    await end()
  }
  const type = async (text: string) => {
    await page.keyboard.type(text)
    await end()
  }
  const tabTo = (name: string | RegExp) => tab(page, name)
  return {
    page,
    press,
    type,
    tabTo,
    async activate(name) {
      await tabTo(name)
      await press('Enter')
    },
    async go(key, title) {
      await press('g', key)
      await page.getByRole('heading', { name: title, level: 1 }).waitFor()
    },
    see: what => what.waitFor(),
    end,
  }
}

const DRAWN_MS = 2_000

async function tab(page: Page, wanted: string | RegExp): Promise<void> {
  const seen: string[] = []
  for (let pressed = 0; pressed < MOST_TABS; pressed++) {
    await page.keyboard.press('Tab')
    const focused = () => page.evaluate<Focused>(FOCUSED)
    let { name, tag, isVisible } = await focused()
    if (tag === 'BODY') continue
    // a page that is being drawn shows it a moment later
    for (const end = performance.now() + DRAWN_MS; !isVisible && performance.now() < end; )
      ({ name, tag, isVisible } = await focused())
    if (!isVisible) throw new Error(`the focus is not visible on ${tag} ${name.slice(0, 60)}`)
    if (typeof wanted === 'string' ? name === wanted : wanted.test(name)) return
    seen.push(name.slice(0, 30))
  }
  throw new Error(`Tab does not lead to ${wanted}, but to ${[...new Set(seen)].join(' | ')}`)
}
