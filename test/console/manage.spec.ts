import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { runSvc } from '../support/command.ts'
import { hostileCommand } from '../support/hostile.ts'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible } from './support/browser.ts'
import { HOSTILE } from './support/odd-tools.ts'
import { useConsole } from './support/use-console.ts'

/** Until new workers serve. */
const RELOAD = { timeout: 60_000 }
const BROKEN = '{"success":false,"error":"broken","error_code":"INTERNAL_ERROR","details":{}}'

const ODD = fileURLToPath(new URL('support/odd-tools.ts', import.meta.url))

const read = async (url: string) => (await fetch(url)).json() as Promise<Record<string, unknown>>
const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1 }).waitFor()

describeWith('chromium', 'the pages of the console for administrators', function () {
  this.timeout(240_000)
  const clients = [{ name: 'fixed', ...hostileCommand({ fickle: 'start' }) }]
  const server = useConsole({
    files: { 'svc.config.yaml': JSON.stringify({ plugins: [ODD], mcp: { clients } }) },
    env: { SVC_SECRETS_KEY: randomBytes(32).toString('base64'), SVC_SERVER__KEEP_ALIVE_MS: '5000' },
  })
  const { at, open } = server

  describe('tools', () => {
    it('are called with a form over nested schemas, and with JSON beside it; each shows what the other says', async () => {
      await using view = await open('tools?q=order')
      const { page, problems } = view
      await heading(page, 'Tools')
      await page.getByRole('link', { name: /^order/ }).click()
      await until(
        async () => page.url(),
        url => url.includes('id=order')
      )
      const json = page.getByLabel('Arguments as JSON')
      await page.getByLabel('Name', { exact: false }).first().fill('Ada')
      await page.getByLabel('Count').first().fill('3')
      await page.getByRole('button', { name: 'Add an entry' }).click()
      await page.getByLabel('Count').nth(1).fill('4')
      await page.getByLabel('Kind').nth(1).selectOption({ label: 'milk' })
      await page.locator('.editor-field').waitFor()
      const typed = () => json.innerText().then(text => JSON.parse(text) as { who: object; lines: object[] })
      await until(typed, ({ lines }) => lines.length === 2)
      expect((await typed()).who).to.include({ name: 'Ada' })
      expect((await typed()).lines[1]).to.deep.equal({ count: 4, kind: 'milk' })
      await json.fill('{ "who": { "name": "Grace" }, "lines": [{ "count": 1 }], "pays": { "number": "12" } }')
      await until(
        () => page.getByLabel('Name', { exact: false }).first().inputValue(),
        name => name === 'Grace'
      )
      await page.locator('#form_pays_number').waitFor()
      await page.getByRole('button', { name: 'Call the tool' }).click()
      await page.getByLabel('The call').getByText('completed').waitFor()
      await page.getByLabel('Text of the result').getByText('"Grace"').waitFor()
      expect(problems).to.deep.equal([])
    })

    it('are checked by the server, whose answer is shown, and by the form before', async () => {
      await using view = await open('tools?id=order')
      const { page } = view
      await page.getByLabel('Arguments as JSON').fill('{ "who": { "name": "x" }, "lines": [] }')
      await page.locator('.problem').first().waitFor()
      await page.getByRole('button', { name: 'Call the tool' }).click()
      await page.getByRole('alert').getByText('INVALID_VALUE').waitFor()
      await page.getByLabel('Arguments as JSON').fill('{ "who": ')
      await page.getByRole('alert').filter({ hasText: 'JSON' }).first().waitFor()
      expect(await page.getByRole('button', { name: 'Call the tool' }).isDisabled()).to.equal(true)
    })

    it('have forms for schemas that refer to themselves, and none of their texts is more than text', async () => {
      await using view = await open('tools?id=tree')
      const { page, problems } = view
      await page.getByLabel('Arguments as JSON').fill('{ "root": { "name": "a", "parts": [{ "name": "b", "parts": [] }] } }')
      await page.getByRole('button', { name: 'Call the tool' }).click()
      await page.getByLabel('Text of the result').getByText('"b"').waitFor()
      await page.goto(at('tools?id=hostile'))
      await page.getByLabel('Arguments as JSON').waitFor()
      await page.locator('.form-field').first().waitFor()
      for (const tab of ['Schema', 'About']) await page.getByRole('link', { name: tab, exact: true }).click()
      await page.getByText('onerror').first().waitFor()
      await page.goto(at('logs?q=hostile%20line'))
      await page.locator('.log-line').first().click()
      await page.getByRole('region', { name: 'Fields of the line' }).waitFor()
      expect(await page.evaluate('window.hacked')).to.equal(undefined)
      expect(await page.locator('main').locator('script, iframe, object, embed, img').count()).to.equal(0)
      const hrefs = await page.evaluate<string[]>(
        "[...document.querySelectorAll('main a')].map(link => link.getAttribute('href'))"
      )
      expect(hrefs.filter(href => /^(javascript|data):/i.test(href))).to.deep.equal([])
      expect(problems, HOSTILE).to.deep.equal([])
    })
  })

  describe('MCP servers', () => {
    it('show what changed beside what was approved, and use it after the approval', async () => {
      await using view = await open('mcp?id=fixed')
      const { page, problems } = view
      const mcpServer = () => read(`${server.url}/api/v1/mcp/servers/fixed`)
      await until(mcpServer, ({ state }) => state === 'connected' || state === 'degraded')
      // each of its processes describes a tool otherwise; a reload of the server before has started another, too
      if (((await mcpServer()).changed as string[]).length === 0) {
        await page.getByRole('button', { name: 'Disable' }).click()
        await page.getByRole('button', { name: 'Enable', exact: true }).click()
        await until(mcpServer, ({ changed }) => (changed as string[]).includes('echo'))
      }
      await page.getByRole('link', { name: 'See the changes' }).click()
      const changes = page.getByRole('region', { name: 'Changes of echo' })
      const [before, after] = [changes.getByLabel('Description, approved'), changes.getByLabel('Description, now')]
      expect(await before.innerText()).not.to.equal(await after.innerText())
      expect(await before.locator('del').count()).to.be.greaterThan(0)
      expect(await after.locator('ins').count()).to.be.greaterThan(0)
      await changes.getByRole('button', { name: 'Approve' }).click()
      await page.getByText('Nothing has changed since it was approved').waitFor()
      expect(((await mcpServer()).changed as string[]).length).to.equal(0)
      expect(problems).to.deep.equal([])
    })

    it('are tested step by step, and show their log', async () => {
      await using view = await open('mcp?id=fixed&tab=test')
      const { page } = view
      await page.getByRole('button', { name: 'Test the connection' }).click()
      await page.getByText('List the tools').waitFor()
      await page.getByText('works', { exact: true }).waitFor()
      await page.getByRole('link', { name: 'Log', exact: true }).click()
      await page.getByText(/^live \d+ lines?$/).waitFor()
    })

    it('are added with a dialog, which says what the server refuses, and removed', async () => {
      await using view = await open('mcp')
      const { page } = view
      await page.getByRole('button', { name: 'Add a server' }).click()
      await page.getByRole('textbox', { name: /^Name/ }).fill('bad name')
      await page.getByLabel('URL').fill('http://127.0.0.1:9/mcp')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').getByRole('alert').getByText('INVALID_VALUE').waitFor()
      await page.getByRole('textbox', { name: /^Name/ }).fill('nowhere')
      await page.keyboard.press('Enter')
      // the dialog closes when workers that know the server serve
      await page.getByRole('dialog').getByText('loads it with a reload').waitFor()
      await page.getByRole('dialog').waitFor({ state: 'hidden', ...RELOAD })
      await page.getByRole('heading', { name: 'nowhere', level: 2 }).waitFor()
      await page.getByRole('button', { name: 'Remove' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
      await page.getByText('There is no server nowhere').waitFor(RELOAD)
    })
  })

  it('shows models, breakers and prices of a provider, and tests it', async () => {
    await using view = await open('providers?id=local')
    const { page, problems } = view
    await page.getByRole('rowheader', { name: /local-small/ }).waitFor()
    await page.getByRole('button', { name: 'Send a short message' }).click()
    await page
      .getByText(/answers$/)
      .last()
      .waitFor()
    await page.getByText('Whole answer').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('adds up usage as the API does, as rows and as a chart that is loaded when it is first used', async () => {
    await post(`${server.url}/api/v1/chat`, { message: 'Count me' })
    await using view = await open('usage?by=model&range=1h')
    const { page, problems } = view
    const table = page.getByRole('region', { name: 'Usage' })
    await table.getByRole('row').nth(2).waitFor()
    const { total } = (await read(`${server.url}/api/v1/usage?by=model`)) as { total: { input_tokens: number } }
    const shown = await table
      .getByRole('row', { name: /^total/ })
      .getByRole('cell')
      .nth(4)
      .innerText()
    expect(Number(shown.replaceAll(',', ''))).to.equal(total.input_tokens)
    await page.locator('.chart canvas').waitFor()
    await page.getByRole('img', { name: /^tokens over time/ }).waitFor()
    await page.getByRole('link', { name: 'Requests', exact: true }).click()
    await page.getByRole('img', { name: /^requests over time/ }).waitFor()
    await page.getByText('Requests a minute').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('names the source of each key, checks a draft with the plugins, saves it, and loads it with a reload', async () => {
    await using view = await open('configuration?q=body_limit&id=server.body_limit')
    const { page, problems } = view
    await page.getByRole('heading', { name: 'server.body_limit' }).waitFor()
    await page.getByText('from default').waitFor()
    await page.getByRole('button', { name: 'As JSON' }).click()
    const json = page.getByLabel('Value as JSON')
    await json.fill('"much"')
    await page.getByRole('button', { name: 'Check and save' }).click()
    await page.getByRole('list', { name: 'Problems' }).getByRole('listitem').first().waitFor()
    await page.getByText('Nothing was changed').waitFor()
    expect(await page.getByText(/must be/).count(), 'one message').to.equal(1)
    await json.fill('2000000')
    await page.getByRole('button', { name: 'As a form' }).click()
    // the form and the JSON agree: only one of them is there
    expect(await page.getByLabel('Value', { exact: true }).inputValue()).to.equal('2000000')
    expect(await json.count()).to.equal(0)
    await page.getByRole('button', { name: 'Check and save' }).click()
    await page.getByText('Saved. Reload the server to load it.').waitFor()
    await page.getByText('changes that are not in force').waitFor()
    await page.getByRole('button', { name: 'Reload' }).click()
    await page.getByText('New workers serve.').waitFor(RELOAD)
    // at once: no answer of a former worker is shown, whatever connections the browser had to it
    await page.getByText('from <svc home>/svc.config.yaml').waitFor()
    expect(await page.getByText('Saved. Reload').count(), 'the former outcome').to.equal(0)
    expect(await page.getByLabel('Value of server.body_limit').innerText()).to.contain('2000000')
    expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
  })

  it('does not offer to change a key that the environment overrides, and says what to do', async () => {
    await using view = await open('configuration?id=server.keep_alive_ms')
    const { page } = view
    await page.getByText('from SVC_SERVER__KEEP_ALIVE_MS').waitFor()
    await page.getByText(/Change or unset SVC_SERVER__KEEP_ALIVE_MS in the environment of the server/).waitFor()
    expect(await page.getByRole('button', { name: /Check and save|Remove from the file/ }).count()).to.equal(0)
  })

  it('labels the checkbox of a key that is true or false', async () => {
    await using view = await open('configuration?id=traces.enabled')
    await view.page.getByRole('checkbox', { name: 'Value' }).waitFor()
  })

  it('say at 360 px that a list could not be read, also while an item of it is open', async () => {
    for (const [path, route, what] of [
      ['mcp?id=fixed', '**/api/v1/mcp/servers', 'fixed'],
      ['configuration?id=server.body_limit', '**/api/v1/config', 'server.body_limit'],
    ] as const) {
      await using view = await open('overview', { width: 360 })
      const { page } = view
      await heading(page, 'Overview')
      const fail = () =>
        page.route(route, broken => broken.fulfill({ status: 500, contentType: 'application/json', body: BROKEN }))
      await fail()
      await page.goto(at(path))
      await page.getByRole('alert').getByText('INTERNAL_ERROR').waitFor()
      expect(await page.getByText(/There is no server|Select a key/).count(), 'what is not known').to.equal(0)
      await expectAccessible(page, `${path} with an error`)
      // it was known before: what is shown is old, and says so
      await page.unroute(route)
      await page.getByRole('button', { name: 'Try again' }).filter({ visible: true }).click()
      await page.getByRole('heading', { name: what, level: 2 }).waitFor()
      await fail()
      await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
      await post(`${server.url}/api/v1/reload`, {})
      await page
        .getByText(/This is what the server said/)
        .filter({ visible: true })
        .waitFor()
      await page.getByRole('heading', { name: what, level: 2 }).waitFor()
    }
  })

  it('follows the log over a reload of the server, and filters it by a request of any page', async () => {
    await using view = await open('logs')
    const { page, problems } = view
    await page.locator('.log-line').first().waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    const { code, err } = await runSvc(['reload'], { home: server.home })
    expect(code, err).to.equal(0)
    await page.getByRole('link', { name: 'Events', exact: true }).click()
    await post(`${server.url}/api/v1/chat`, { message: 'after the reload' })
    await page.getByRole('button', { name: 'turn_completed' }).first().click()
    await page.getByRole('region', { name: 'The event' }).waitFor()
    await page.getByRole('link', { name: 'Overview', exact: true }).click()
    await page.getByRole('link', { name: 'Turn completed' }).first().click()
    await heading(page, 'Logs and events')
    expect(page.url()).to.contain('request=')
    await page.getByRole('link', { name: 'All requests' }).click()
    await page.locator('.log-line').first().waitFor()
    expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
  })

  describe('webhooks', () => {
    let receiver: Server
    const received: string[] = []
    before(async () => {
      receiver = createServer((request, response) => {
        received.push(String(request.headers['webhook-id']))
        request.resume().on('end', () => response.writeHead(204).end())
      })
      await new Promise<void>(resolve => void receiver.listen(0, '127.0.0.1', resolve))
    })
    after(() => receiver?.close())

    it('are added with a secret that is shown once, tested, changed and removed', async () => {
      await using view = await open('webhooks')
      const { page, problems } = view
      await page.getByText('No webhooks').waitFor()
      await page.locator('.empty').getByText('it needs a key for secrets').waitFor()
      await page.getByRole('button', { name: 'Add a webhook' }).click()
      await page.getByRole('dialog').getByText('it needs a key for secrets').waitFor()
      await page.getByLabel('URL').fill(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`)
      await page.getByLabel('Name (optional)').fill('Mine')
      await page.keyboard.press('Enter')
      await page
        .getByLabel('Secret')
        .getByText(/^whsec_/)
        .waitFor()
      await page.keyboard.press('Escape')
      await page.locator('.list-item', { hasText: 'Mine' }).click()
      await page.getByRole('button', { name: 'Send a test' }).click()
      // loopback addresses are refused, unless the configuration allows them: either way the page says what came
      await page
        .getByRole('status')
        .getByText(/delivered|in \d/)
        .first()
        .waitFor()
      await page.getByRole('button', { name: 'Change', exact: true }).click()
      await page.getByLabel('Deliver events').uncheck()
      await page.getByRole('button', { name: 'Save' }).click()
      await page.locator('.list-item', { hasText: 'disabled' }).waitFor()
      await page.getByRole('button', { name: 'Remove' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
      await page.getByText('No webhooks').waitFor()
      expect(problems).to.deep.equal([])
    })
  })

  it('examines the server, and shows findings as they come', async () => {
    await using view = await open('doctor')
    const { page, problems } = view
    await page.getByRole('button', { name: 'Examine the server' }).click()
    await page.getByRole('list', { name: 'Findings' }).getByText('node', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Examine again' }).waitFor({ timeout: 60_000 })
    expect(problems).to.deep.equal([])
  })

  it('shows what a plugin may do, costs and was refused', async () => {
    await using view = await open('plugins?q=plugin-http')
    const { page, problems } = view
    await page.locator('.list-item').first().click()
    await page.getByText('in the process of the server').waitFor()
    const views = page.getByRole('navigation', { name: 'Views of the plugin' })
    for (const [tab, text] of [
      ['Costs', 'Calls of its hooks and contributions'],
      ['Refused', 'Nothing is refused'],
      ['What it adds', 'Provides'],
    ] as const) {
      await views.getByRole('link', { name: tab, exact: true }).click()
      await page.getByText(text).first().waitFor()
    }
    await page.reload()
    await page.getByText('Provides').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('shows more rows when the reader asks for it, and remembers', async () => {
    await using view = await open('overview')
    const { page } = view
    const button = page.getByRole('button', { name: 'Compact rows' })
    await button.click()
    expect(await button.getAttribute('aria-pressed')).to.equal('true')
    await page.reload()
    await heading(page, 'Overview')
    expect(await page.evaluate("document.documentElement.getAttribute('data-density')")).to.equal('compact')
    await button.click()
  })
})
