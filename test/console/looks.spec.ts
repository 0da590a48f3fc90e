import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/wait.ts'
import { openBrowser, openConsole } from './support/browser.ts'
import { type FilledServer, openFilled } from './support/filled-server.ts'
import { FOCUSED, type Focused } from './support/keyboard.ts'
import { type PageState, pageStates } from './support/page-states.ts'

/** So long each answer takes while a page loads: its parts arrive one after the other. */
const SLOW_MS = 150
/** The sum of all movements of a load. 0.1 is good by the measure of web.dev. */
const MOST_SHIFT = 0.02
/** One column: what is taller than expected moves all below it. Up to here, browsers call a page stable (web.dev/articles/cls). */
const MOST_SHIFT_NARROW = 0.1
/** Of a line of text, in heights of its letters: about 120 characters. */
const WIDEST_EM = 62

const WATCH_SHIFTS = `window.shifts = []
new PerformanceObserver(list => {
  for (const entry of list.getEntries())
    window.shifts.push({ value: entry.value, of: entry.sources.map(({ node }) => node?.className || node?.nodeName || '').join(', ') })
}).observe({ type: 'layout-shift', buffered: true })`

/** Elements that move by themselves. */
const MOVING = `[...document.querySelectorAll('*')].flatMap(element => {
  const { transitionDuration, animationName, animationDuration } = getComputedStyle(element)
  const isLong = durations => durations.split(', ').some(time => parseFloat(time) > 0.001)
  const moves = isLong(transitionDuration) || (animationName !== 'none' && isLong(animationDuration))
  return moves ? [element.tagName + '.' + element.className] : []
})`

/** Lines of text that are too long to be read, in the main part of the page. Tables, code and logs have lines of their own. */
const LONG_LINES = `(() => {
  const found = []
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (text.parentElement.closest('[role="table"], pre, code, .log-line, .visually-hidden, svg') || text.data.trim() === '') continue
    const range = document.createRange()
    range.selectNodeContents(text)
    const size = parseFloat(getComputedStyle(text.parentElement).fontSize)
    const most = text.parentElement.closest('.clip')?.clientWidth ?? Infinity
    for (const { width } of range.getClientRects()) if (Math.min(width, most) / size > ${WIDEST_EM}) found.push(Math.round(width / size) + ' em: ' + text.data.slice(0, 80))
  }
  return found
})()`

/** Times without the exact time. */
const VAGUE_TIMES = `[...document.querySelectorAll('main time')].filter(time =>
  Number.isNaN(Date.parse(time.dateTime)) || !/\\d{4}/.test(time.title) || !/\\d{1,2}:\\d\\d/.test(time.title)).map(time => time.outerHTML)`

/** Texts about the passing of time that are no time elements. */
const LOOSE_TIMES = `(() => {
  const found = []
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
  for (let text = texts.nextNode(); text; text = texts.nextNode())
    if (/^\\d+ (sec|min|hr|day)s?\\.? ago$/.test(text.data.trim()) && !text.parentElement.closest('time')) found.push(text.data)
  return found
})()`

/** Things that say by their looks which they are: pairs that must differ, with only the colours of the system. */
const ALIKE = `(() => {
  const looks = element => {
    const of = (part, properties) => { const style = getComputedStyle(element, part); return properties.map(name => style[name]).join(' ') }
    const names = ['color', 'backgroundColor', 'outlineStyle', 'outlineColor', 'textDecorationLine', 'fontWeight', 'boxShadow',
      'borderTopColor', 'borderLeftColor', 'borderBottomColor', 'borderTopStyle', 'borderLeftStyle', 'borderBottomStyle',
      'borderTopWidth', 'borderLeftWidth', 'borderBottomWidth']
    return [of(null, names), of('::before', ['content', ...names]), of('::after', ['content', ...names])].join('|')
  }
  const pairs = [
    ['.nav-page[aria-current]', '.nav-page:not([aria-current])'],
    ['.chip[data-current]', '.chip:not([data-current])'],
    ['.tab[data-current]', '.tab:not([data-current])'],
    ['.list-item[data-current]', '.list-item:not([data-current])'],
    ['.table-row[data-current]', '.table-body .table-row:not([data-current])'],
    ['.span[aria-selected="true"]', '.span[aria-selected="false"]'],
  ]
  return pairs.flatMap(([one, other]) => {
    const [first, second] = [document.querySelector(one), document.querySelector(other)]
    return first && second && looks(first) === looks(second) ? [one] : []
  })
})()`

const TABS = 8
/** Tabs of a selection are placed as the first one. */
const OF_SELECTION = /[?&]id=.*&tab=/
const NARROW = { width: 360, height: 800 }
const USUAL = { width: 1280, height: 800 }
const HUGE = { width: 3840, height: 2160 }

describeWith('chromium', 'the looks of each page of the console', function () {
  this.timeout(120_000)
  const ends = new AsyncDisposableStack()
  let browser: Browser
  let full: FilledServer
  let narrow: Page
  let usual: Page
  before(async () => {
    browser = await openBrowser()
    ends.defer(() => browser.close())
    full = await openFilled(ends)
    const open = async (width: number) => {
      const { page } = ends.use(await openConsole(browser, `${full.service.url}/console/overview`, { width }))
      await page.addInitScript(WATCH_SHIFTS)
      return page
    }
    narrow = await open(NARROW.width)
    usual = await open(USUAL.width)
  })
  after(() => ends.disposeAsync())

  for (const route of Object.keys(pageStates({})))
    it(`${route}: nothing jumps, nothing moves if that is unwanted, system colours, 4K, exact times`, async () => {
      const { service, ids } = full
      const states = pageStates(ids)[route]!.full.filter(({ path }) => !OF_SELECTION.test(path))
      const onNarrow = async () => {
        for (const state of new Map(states.map(state => [state.path, state])).values()) await load(narrow, service.url, state)
      }
      const onUsual = async () => {
        for (const state of states) {
          await setWidth(usual, USUAL)
          await load(usual, service.url, state)
          await state.act?.(usual)
          await usual.locator(state.shows).filter({ visible: true }).first().waitFor()
          await expectLooks(usual, state.path)
        }
      }
      // most of the time is waiting; a fault of one width leaves no work behind for the next test
      const ends = await Promise.allSettled([onNarrow(), onUsual()])
      for (const end of ends) if (end.status === 'rejected') throw end.reason
    })
})

async function setWidth(page: Page, size: typeof USUAL): Promise<void> {
  await page.setViewportSize(size)
  await until(
    () => page.evaluate<number>('innerWidth'),
    width => width === size.width
  )
}

/** Opens a page whose parts arrive one after the other, and fails if it jumps meanwhile. */
async function load(page: Page, url: string, { path, shows }: PageState): Promise<void> {
  let held = 0
  await page.route(/\/(api\/v1|views|health)/, async slow => {
    held += 1
    await sleep(SLOW_MS)
    held -= 1
    // the page can be at another address by then
    await slow.continue().catch(() => {})
  })
  await page.goto(`${url}/console/${path}`)
  const shown = page.locator(shows).or(page.locator('h1')).filter({ visible: true }).first()
  await shown.waitFor()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  await shown.waitFor()
  await until(
    async () => held,
    requests => requests === 0
  )
  await page.evaluate('new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  await expectStill(page, path)
  await page.unrouteAll({ behavior: 'ignoreErrors' })
}

async function expectLooks(page: Page, path: string): Promise<void> {
  expect(await page.evaluate(VAGUE_TIMES), `${path}: times without the exact one`).to.deep.equal([])
  expect(await page.evaluate(LOOSE_TIMES), `${path}: times that are only text`).to.deep.equal([])

  await page.emulateMedia({ reducedMotion: 'reduce' })
  expect(await page.evaluate(MOVING), `${path}: moves, although the reader wants no movement`).to.deep.equal([])
  await page.emulateMedia({ reducedMotion: 'no-preference' })

  await page.emulateMedia({ forcedColors: 'active' })
  expect(await page.evaluate(ALIKE), `${path}: look like the others in the colours of the system`).to.deep.equal([])
  await expectFocus(page)
  await page.emulateMedia({ forcedColors: 'none' })

  await setWidth(page, HUGE)
  expect(await page.evaluate(LONG_LINES), `${path}: lines of text on a 4K screen`).to.deep.equal([])
  expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth'), `${path} scrolls sideways`).to.equal(false)
}

async function expectStill(page: Page, path: string): Promise<void> {
  const shifts = await page.evaluate<readonly { readonly value: number; readonly of: string }[]>('window.shifts')
  const sum = shifts.reduce((all, { value }) => all + value, 0)
  const width = await page.evaluate<number>('innerWidth')
  expect(
    sum,
    `${path}: layout shift at ${width} px: ${shifts.map(({ value, of }) => `${value.toFixed(4)} of ${of}`).join('; ')}`
  ).to.be.at.most(width === NARROW.width ? MOST_SHIFT_NARROW : MOST_SHIFT)
}

/** Each of the first stops of Tab shows that it has the focus. */
async function expectFocus(page: Page): Promise<void> {
  await page
    .locator('h1')
    .first()
    .evaluate('element => element.focus()')
    .catch(() => {})
  for (let pressed = 0; pressed < TABS; pressed++) {
    await page.keyboard.press('Tab')
    const { tag, name, isVisible } = await page.evaluate<Focused>(FOCUSED)
    if (tag !== 'BODY' && tag !== 'IFRAME')
      expect(isVisible, `the focus is visible on ${tag} ${name.slice(0, 60)}`).to.equal(true)
  }
}
