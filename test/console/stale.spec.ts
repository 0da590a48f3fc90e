import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible, openBrowser, openConsole } from './support/browser.ts'
import { type FilledServer, openFilled } from './support/filled-server.ts'

const BROKEN = {
  status: 500,
  contentType: 'application/json',
  headers: { 'x-request-id': 'broken-1' },
  body: '{"success":false,"error":"broken","error_code":"INTERNAL_ERROR","details":{}}',
}
/** The clock of the page is 20 seconds ahead, plus the seconds of the test. */
const OLD = /This is what the server said [2-5]\d sec ago/

/** A page that was read, the path that it reads again, and what of it stays. */
interface ReadPage {
  readonly path: string
  readonly reads: RegExp
  readonly stays: string
  /** It has the failure as an alert, and its age below. */
  readonly isList?: boolean
}

const readPages = (ids: FilledServer['ids']): readonly ReadPage[] => [
  { path: `runs?id=${ids.run}`, reads: /\/workflows\/[^/]+\/status$/, stays: 'h1:text-is("steps")' },
  { path: `jobs?id=${ids.job}`, reads: /\/jobs\/[^/]+$/, stays: 'h1:text-is("manual.echo")' },
  { path: 'schedules?id=nightly', reads: /\/schedules\/nightly$/, stays: 'text=Last ticks' },
  { path: 'workflows?id=steps&tab=versions', reads: /\/workflows\/versions$/, stays: '[role="cell"] code' },
  { path: 'mcp?id=fixed&tab=tools', reads: /\/mcp\/servers\/fixed\/tools$/, stays: 'details.tool' },
  { path: 'pages/things', reads: /\/console\/pages\/things\/view$/, stays: '[role="cell"] >> text=One' },
  { path: 'pages/things', reads: /^\/views\/count$/, stays: '.tile-value >> text=2' },
  { path: `teams?id=${ids.team}`, reads: /\/teams\/runs\/[^/]+$/, stays: '.member' },
  { path: 'overview', reads: /\/api\/v1\/series$/, stays: '.tile-value >> text=/\\d/' },
  { path: `conversations?id=${ids.conversation}`, reads: /\/conversations\/[^/]+$/, stays: '.message-assistant', isList: true },
  { path: `traces?id=${ids.trace}`, reads: /\/traces\/[^/]+$/, stays: '.span', isList: true },
  { path: 'overview', reads: /\/api\/v1\/status$/, stays: 'section[aria-label="Providers"] dd' },
]

describeWith('chromium', 'a page of the console while the server is slow, fails or is gone', function () {
  this.timeout(120_000)
  const ends = new AsyncDisposableStack()
  let browser: Browser
  let full: FilledServer
  before(async () => {
    browser = await openBrowser()
    ends.defer(() => browser.close())
    full = await openFilled(ends)
  })
  after(() => ends.disposeAsync())
  const at = (path: string) => `${full.service.url}/console/${path}`

  it('shows what it has read with its age and a way to read it again, if it cannot be read again', async () => {
    await using view = await openConsole(browser, at('overview'))
    const { page, problems } = view
    await page.clock.install()
    for (const one of readPages(full.ids)) await checkOld(page, at(one.path), one)
    await page.route('**/api/v1/status', route => route.fulfill(BROKEN))
    await comeBackLater(page)
    await page.getByText(OLD).waitFor()
    await expectAccessible(page, 'a page that is old')
    expect(problems).to.deep.equal([])
  })

  it('says that it loads until its data is there, also where it is no list', async () => {
    await using view = await openConsole(browser, at('doctor'))
    const { page, problems } = view
    let held = Promise.withResolvers<void>()
    await page.route(/\/health$|\/api\/v1\/(?!me$|console\/|events)/, async route => {
      await held.promise
      await route.continue()
    })
    for (const [path, shows] of [
      ['overview', 'section[aria-label="Providers"] dd'],
      [`runs?id=${full.ids.run}`, '.notices'],
      ['usage?by=model', 'tfoot'],
      ['configuration?id=server.body_limit', 'h2:text-is("server.body_limit")'],
      [`teams?id=${full.ids.team}`, '.member'],
    ] as const) {
      held = Promise.withResolvers<void>()
      await page.goto(at(path))
      await page.locator('h1').first().waitFor()
      const loading = page.getByRole('status', { name: 'Loading' })
      await loading.locator('.skeleton-row').first().waitFor()
      expect(await page.locator(shows).count(), `${path} before its data`).to.equal(0)
      held.resolve()
      await page.locator(shows).first().waitFor()
      await loading.first().waitFor({ state: 'detached' })
    }
    expect(problems).to.deep.equal([])
  })

  it('says that the server does not answer, and goes on by itself when it is back', async () => {
    const { home, url } = full.service
    await using view = await openConsole(browser, at('overview'))
    const { page } = view
    await page.getByText('live', { exact: true }).waitFor()
    await page.locator('section[aria-label="Checks"] dd').first().waitFor()
    const banner = page.getByText('The server does not answer. What you see can be old')
    expect(await banner.count()).to.equal(0)
    await full.service.stop()
    await banner.waitFor()
    await page.locator('section[aria-label="Checks"] dd').first().waitFor()
    await expectAccessible(page, 'a page without its server')
    ends.use(await startService({ home, ownPort: true, args: ['--port', new URL(url).port] }))
    await banner.waitFor({ state: 'detached' })
    // an event of another worker can come before that one sends its events
    await until(
      async () => {
        await post(`${url}/api/v1/chat`, { message: 'The server is back' })
        return page.getByText('Turn completed').count()
      },
      count => count > 0
    )
  })

  it('goes on by itself, too, if all that it has asked has given up', async () => {
    await using view = await openConsole(browser, at('teams'))
    const { page } = view
    const banner = page.getByText('The server does not answer. What you see can be old')
    await page.getByRole('link', { name: 'pair', exact: true }).first().waitFor()
    await page.route('**/api/v1/teams/runs?**', route => route.abort())
    await page.getByRole('button', { name: 'Refresh' }).click()
    await page.getByRole('alert').waitFor()
    await banner.waitFor()
    await page.unrouteAll()
    await banner.waitFor({ state: 'detached' })
    await page.getByRole('alert').waitFor({ state: 'detached' })
    // the first try to follow the events fails
    await page.route('**/api/v1/events', route => route.abort())
    const failed = page.waitForEvent('requestfailed', request => request.url().endsWith('/api/v1/events'))
    await page.goto(at('overview'))
    await failed
    await banner.waitFor()
    await page.unrouteAll()
    await page.getByText('live', { exact: true }).waitFor()
    await banner.waitFor({ state: 'detached' })
  })

  it('says before the login that the server does not answer, and begins when it is asked to try again', async () => {
    await using view = await openConsole(browser, at('overview'))
    const { page } = view
    await page.route('**/api/v1/me', route => route.abort())
    await page.reload()
    await page.getByRole('heading', { name: 'The server does not answer', level: 1 }).waitFor()
    await page.getByRole('alert').waitFor()
    await expectAccessible(page, 'the start without a server')
    await page.unroute('**/api/v1/me')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  })
})

/** Reads a page, and has it read again some time later: that fails at first. */
async function checkOld(page: Page, url: string, { path, reads, stays, isList = false }: ReadPage): Promise<void> {
  await page.goto(url)
  const kept = page.locator(stays).filter({ visible: true }).first()
  await kept.waitFor()
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  await page.route(
    ({ pathname }) => reads.test(pathname),
    route => route.fulfill(BROKEN)
  )
  await comeBackLater(page)
  const old = page.getByText(OLD).first()
  await old.waitFor()
  await kept.waitFor()
  const log = (isList ? page.getByRole('alert') : old).getByRole('link')
  expect(await log.getAttribute('href'), path).to.contain('/console/logs?request=')
  await page.unrouteAll()
  await page.getByRole('button', { name: 'Try again' }).first().click()
  await old.waitFor({ state: 'detached' })
  await until(
    () => kept.count(),
    count => count === 1
  )
}

/** The page reads again what is old when its reader comes back to it. */
async function comeBackLater(page: Page): Promise<void> {
  await page.clock.fastForward(20_000)
  await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))")
}
