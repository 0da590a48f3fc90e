import { AxeBuilder } from '@axe-core/playwright'
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import type { Service } from '../../support/service.ts'
import { openBrowser, openConsole } from './browser.ts'
import { type FilledServer, openBare, openFilled } from './filled-server.ts'
import { type PageGroup, type PageState, pageStates } from './page-states.ts'

/** The title of the tests of each group. */
export const EACH_PAGE = 'each page of the console is accessible: light and dark, 1280 and 360 px, empty, full and broken'

const WIDTHS = [1280, 360] as const
const THEMES = ['light', 'dark'] as const
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
/** The rules whose answer depends on colours. The others were asked in the other theme, of the same elements. */
const OF_COLOURS = ['color-contrast', 'link-in-text-block']

/** A browser, a server where nothing has happened, and one that has something of each kind. */
export interface PageServers {
  readonly browser: Browser
  readonly bare: Service
  readonly full: FilledServer
}

/** Starts them before the tests of this `describe`, and ends them after. */
export function usePageServers(): () => PageServers {
  const ends = new AsyncDisposableStack()
  let servers: PageServers
  before(async () => {
    const browser = await openBrowser()
    ends.defer(() => browser.close())
    const [bare, full] = await Promise.all([openBare(ends), openFilled(ends)])
    servers = { browser, bare, full }
  })
  after(() => ends.disposeAsync())
  return () => servers
}

/** Has a test for each page of a group: empty, full and broken. */
export function checkPages(group: PageGroup, servers: () => PageServers): void {
  for (const [route, { group: own }] of Object.entries(pageStates({})))
    if (own === group) it(route, () => checkPage(route, servers()))
}

async function checkPage(route: string, { browser, bare, full }: PageServers): Promise<void> {
  const { title, empty, full: filled, error } = pageStates(full.ids)[route]!
  const url = `${full.service.url}/console`
  await using nothing = await openConsole(browser, `${bare.url}/console/${empty.path}`)
  await check(nothing.page, title, empty, 'empty')
  await using view = await openConsole(browser, `${url}/${filled[0].path}`)
  for (const [at, state] of filled.entries()) {
    if (at > 0) await view.page.goto(`${url}/${state.path}`)
    await check(view.page, title, state, 'full')
  }
  await breakAll(view.page)
  await view.page.goto(`${url}/${error.path}`)
  await check(view.page, title, error, 'broken')
  expect([...nothing.problems, ...view.problems]).to.deep.equal([])
}

/** Checks an open page in each theme and width. */
async function check(
  page: Page,
  title: string,
  { path, act, shows, title: own = title }: PageState,
  state: 'empty' | 'full' | 'broken'
) {
  // a colour that fades would be measured on its way
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.locator('h1', { hasText: own }).waitFor({ state: 'attached' })
  await act?.(page)
  await page.locator(shows).filter({ visible: true }).first().waitFor()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  await expectEverywhere(page, `${path}, ${state}`, async what => {
    const alerts = await page.getByRole('alert').filter({ visible: true }).count()
    if (state === 'broken') expect(alerts, `alerts of ${what}`).to.be.above(0)
  })
}

/** Checks what is open in each theme and width. */
export async function expectEverywhere(page: Page, what: string, also?: (what: string) => Promise<void>): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 })
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme })
      await expectRules(page, theme === 'light' ? undefined : OF_COLOURS, `${what}, ${theme}, ${width} px`)
    }
    const isTooWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth')
    expect(isTooWide, `${what}, ${width} px scrolls sideways`).to.equal(false)
    await also?.(`${what}, ${width} px`)
  }
}

/** Every request of the page fails, but for who uses it and which pages plugins have. */
async function breakAll(page: Page): Promise<void> {
  await page.route(/\/api\/v1\/(?!me$|console\/)|\/views\//, route =>
    route.fulfill({
      status: 500,
      contentType: 'application/json',
      body: '{"success":false,"error":"broken","error_code":"INTERNAL_ERROR","details":{}}',
    })
  )
}

async function expectRules(page: Page, rules: readonly string[] | undefined, what: string): Promise<void> {
  // no page of this test has a frame of another origin: axe needs no second page to put its answers together
  const axe = new AxeBuilder({ page, axeSource: await axeSourceFor(page) })
    .setLegacyMode(true)
    .options({ resultTypes: ['violations'] })
  const { violations } = await (rules ? axe.withRules([...rules]) : axe.withTags(TAGS)).analyze()
  const broken = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target.join(' ')} ${failureSummary}`).join('; ')}`
  )
  expect(broken, what).to.deep.equal([])
}

/**
 * What the builder runs in a page before each analysis: axe, of half a megabyte. That takes longer than most analyses, so a page that has it
 * gets nothing. `undefined` stands for axe.
 */
async function axeSourceFor(page: Page): Promise<string | undefined> {
  const hasAxe = page.frames().length === 1 && (await page.evaluate<boolean>('window.axe !== undefined'))
  return hasAxe ? 'void 0' : undefined
}
