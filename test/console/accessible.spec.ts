import { AxeBuilder } from '@axe-core/playwright'
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import type { Service } from '../support/service.ts'
import { openBrowser, openConsole } from './support/browser.ts'
import { type FilledServer, openBare, openFilled } from './support/filled-server.ts'
import { type PageState, pageStates } from './support/page-states.ts'

const WIDTHS = [1280, 360] as const
const THEMES = ['light', 'dark'] as const
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
/** The rules whose answer depends on colours. The others were asked in the other theme, of the same elements. */
const OF_COLOURS = ['color-contrast', 'link-in-text-block']
/** Pages, and the buttons that open a dialog. */
const DIALOGS = [
  ['tokens', 'New token'],
  ['webhooks', 'Add a webhook'],
  ['mcp', 'Add a server'],
  ['schedules', 'New schedule'],
  ['jobs', 'New job'],
  ['teams', 'Run a team'],
  ['overview', 'Keys'],
  ['overview', 'Commands'],
] as const

describeWith(
  'chromium',
  'each page of the console is accessible: light and dark, 1280 and 360 px, empty, full and broken',
  function () {
    this.timeout(120_000)
    const ends = new AsyncDisposableStack()
    let browser: Browser
    let bare: Service
    let full: FilledServer
    before(async () => {
      browser = await openBrowser()
      ends.defer(() => browser.close())
      ;[bare, full] = await Promise.all([openBare(ends), openFilled(ends)])
    })
    after(() => ends.disposeAsync())

    it('and none of the router is left out', async () => {
      await using view = await openConsole(browser, `${bare.url}/console/overview`)
      await view.page.locator('h1').waitFor()
      const routes = await view.page.evaluate<string[]>('Object.keys(window.__TSR_ROUTER__.routesByPath)')
      const ownPages = routes.filter(path => path !== '/')
      expect(ownPages.length).to.be.greaterThan(20)
      expect(Object.keys(pageStates({}))).to.have.members(ownPages)
    })

    for (const route of Object.keys(pageStates({})))
      it(route, async () => {
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
      })

    it('and so are the dialogs', async () => {
      await using view = await openConsole(browser, `${full.service.url}/console/overview`)
      const { page } = view
      await page.emulateMedia({ reducedMotion: 'reduce' })
      for (const [path, button] of DIALOGS) {
        await page.setViewportSize({ width: 1280, height: 800 })
        await page.goto(`${full.service.url}/console/${path}`)
        await page.getByRole('button', { name: button }).click()
        await page.getByRole('dialog').waitFor()
        await expectEverywhere(page, button)
      }
    })
  }
)

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
async function expectEverywhere(page: Page, what: string, also?: (what: string) => Promise<void>): Promise<void> {
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
  const axe = new AxeBuilder({ page }).setLegacyMode(true).options({ resultTypes: ['violations'] })
  const { violations } = await (rules ? axe.withRules([...rules]) : axe.withTags(TAGS)).analyze()
  const broken = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target.join(' ')} ${failureSummary}`).join('; ')}`
  )
  expect(broken, what).to.deep.equal([])
}
