import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { hostileCommand } from '../support/hostile.ts'
import { describeWith } from '../support/needs.ts'
import { newHome, post, type Service, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible, openBrowser, openConsole } from './support/browser.ts'

const ODD = fileURLToPath(new URL('support/odd-tools.ts', import.meta.url))

interface View {
  readonly title: string
  readonly empty: string
  readonly full: readonly string[]
}

/** Each page without a selection, and with one: its tabs and states. */
const VIEWS: readonly View[] = [
  {
    title: 'Tools',
    empty: 'tools?q=nothing-is-called-this',
    full: ['tools?id=order', 'tools?id=order&tab=schema', 'tools?id=order&tab=about'],
  },
  {
    title: 'MCP servers',
    empty: 'mcp?q=none',
    full: ['mcp?id=fixed', 'mcp?id=fixed&tab=tools', 'mcp?id=fixed&tab=changes', 'mcp?id=fixed&tab=test', 'mcp?id=fixed&tab=log'],
  },
  {
    title: 'Plugins',
    empty: 'plugins?q=none',
    full: ['plugins?id=@svc%2Fplugin-http', 'plugins?id=@svc%2Fplugin-http&tab=adds', 'plugins?change=install'],
  },
  { title: 'Providers', empty: 'providers?q=none', full: ['providers?id=local'] },
  { title: 'Tokens', empty: 'tokens?q=none', full: ['tokens'] },
  {
    title: 'Usage and limits',
    empty: 'usage?metric=errors&range=1h',
    full: ['usage?by=model', 'usage?metric=latency&range=1h&by=route'],
  },
  { title: 'Configuration', empty: 'configuration?q=nothing-is-called-this', full: ['configuration?id=server.body_limit'] },
  { title: 'Logs and events', empty: 'logs?request=none', full: ['logs', 'logs?tab=events'] },
  { title: 'Webhooks', empty: 'webhooks?q=none', full: ['webhooks'] },
  { title: 'Doctor', empty: 'doctor', full: ['doctor'] },
]

describeWith('chromium', 'the pages of the console for administrators, for everyone', function () {
  this.timeout(300_000)
  let browser: Browser
  let home: string
  let service: Service
  before(async () => {
    browser = await openBrowser()
    home = await newHome()
    const clients = [{ name: 'fixed', ...hostileCommand({ fickle: 'start' }) }]
    await writeFile(join(home, 'svc.config.yaml'), JSON.stringify({ plugins: [ODD], mcp: { clients } }))
    service = await startService({ home, env: { SVC_SECRETS_KEY: randomBytes(32).toString('base64') } })
    const send = (path: string, body: object = {}) => post(`${service.url}/api/v1/${path}`, body)
    const server = async () => (await fetch(`${service.url}/api/v1/mcp/servers/fixed`)).text()
    await until(server, text => text.includes('"connected"'))
    await send('mcp/servers/fixed/disable')
    await send('mcp/servers/fixed/enable')
    await until(server, text => text.includes('"changed":["echo"]'))
    await send('chat', { message: 'Hello' })
    await send('tokens', { name: 'someone', scopes: ['read'] })
    await send('webhooks', { url: 'https://receiver.example/', name: 'Mine' })
  })
  after(async () => {
    await browser?.close()
    await service?.stop()
    await rm(home, { recursive: true, force: true })
  })

  /** What fails a page: rules of WCAG 2.2 AA, and a page that is wider than the window. */
  const check = async (page: Page, what: string) => {
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    await expectAccessible(page, what)
    expect(
      await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth'),
      `${what} scrolls sideways`
    ).to.equal(false)
  }

  for (const theme of ['light', 'dark'] as const)
    for (const width of theme === 'light' ? [1280] : [360])
      for (const { title, empty, full } of VIEWS)
        it(`${title} can be used by everyone: ${theme}, ${width} px`, async () => {
          await using view = await openConsole(browser, `${service.url}/console/${empty}`, { theme, width })
          const { page, problems } = view
          // a narrow window shows the selected item, without the list and its title
          const heading = () => page.locator('h1', { hasText: title }).waitFor({ state: 'attached' })
          await heading()
          await check(page, `${title}, empty`)
          for (const path of full) {
            await page.goto(`${service.url}/console/${path}`)
            await heading()
            await check(page, path)
          }
          if (title === 'Doctor') {
            await page.getByRole('button', { name: 'Examine the server' }).click()
            await page.getByText('node', { exact: true }).waitFor()
            await check(page, 'findings')
          }
          await page.route('**/api/v1/**', route =>
            route.request().url().endsWith('/me')
              ? route.continue()
              : route.fulfill({
                  status: 500,
                  contentType: 'application/json',
                  body: '{"success":false,"error":"broken","error_code":"INTERNAL_ERROR","details":{}}',
                })
          )
          await page.goto(`${service.url}/console/${full.at(-1)!}`)
          await heading()
          if (title === 'Doctor') await page.getByRole('button', { name: 'Examine the server' }).click()
          if (width === 1280 && !full.at(-1)!.includes('change='))
            await page.getByRole('alert').filter({ visible: true }).first().waitFor()
          await check(page, `${title} with an error`)
          expect(problems).to.deep.equal([])
        })

  for (const scheme of ['light', 'dark'] as const)
    it(`shows dialogs that everyone can use: ${scheme}`, async () => {
      await using view = await openConsole(browser, `${service.url}/console/tokens`, { theme: scheme, width: 360 })
      const { page } = view
      const dialogs = [
        ['tokens', 'New token'],
        ['webhooks', 'Add a webhook'],
        ['mcp', 'Add a server'],
      ] as const
      for (const [path, button] of dialogs) {
        await page.goto(`${service.url}/console/${path}`)
        await page.getByRole('button', { name: button }).click()
        await page.getByRole('dialog').waitFor()
        await expectAccessible(page, button)
      }
    })
})
