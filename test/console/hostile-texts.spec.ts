import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { openUpstream } from '@svc/testing'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { listenMcp } from './support/app-servers.ts'
import { ODD } from './support/odd-lines.ts'
import { useConsole } from './support/use-console.ts'

/** The name as readers see it: nothing hides in it, and nothing turns it around. */
const NAME = /pay[\uFFFD ]?gnp\.exe/
const PLUGIN = fileURLToPath(new URL('support/odd-lines.ts', import.meta.url))
const ASKS = `name: asks
description: "Asks ${JSON.stringify(ODD).slice(1, -1)}"
inputs: { type: object, properties: { what: { type: string } } }
nodes:
  may: { type: human, message: "May \${{ input.what }} run?", branches: { approved: end, rejected: end } }
`
const LINKS = [
  '[script](javascript:window.hacked=1)',
  '[data](data:text/html,<script>window.hacked=1</script>)',
  '[own](/console/tokens)',
  '[login](/console/oidc?code=1)',
  '[mail](mailto:someone@evil.example)',
  '[bank](https://evil.example/login)',
  '[bank](https://bank.example@evil.example/)',
  '[bаnk](https://bаnk.example/)', // the second letter is Cyrillic
]

/** The model calls a tool of an odd name, then says links. */
const openModel = () =>
  openUpstream((_, reply) => {
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: `tool${ODD}`, arguments: '{}' } }
    const chunk = (delta: object, finish: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
    reply.begin({ 'content-type': 'text/event-stream' })
    const isFirst = calls++ === 0
    const pieces = isFirst
      ? [chunk({ tool_calls: [call] }), chunk({}, 'tool_calls')]
      : [chunk({ content: LINKS.join('\n\n') }), chunk({}, 'stop')]
    reply.end(`${pieces.join('')}data: [DONE]\n\n`)
  })
let calls = 0

/** An MCP server that says odd words wherever it can. */
const openOddServer = () =>
  listenMcp(() => {
    const server = new McpServer({ name: `server ${ODD}`, version: `1 ${ODD}`, title: `Server ${ODD}` })
    const words = { title: `Title ${ODD}`, description: `Finds ${ODD}`, annotations: { title: `Note ${ODD}` } }
    server.registerTool('find', words, () => ({ content: [{ type: 'text', text: ODD }] }))
    return server
  })

/** Marks of direction and tags, which no check of names refuses. */
const SOFT = 'pay\u202Egnp.exe\u2066 \u200E\u{E0041}'

/** Names that people give, by the request that takes them. */
const GIVEN: readonly (readonly [path: string, body: object])[] = [
  ['webhooks', { name: `hook ${SOFT}`, url: 'https://hooks.shop.example/x', types: ['run_*'] }],
  ['schedules', { name: 'plain', description: `Description ${SOFT}`, every_ms: 86_400_000, job: { kind: 'odd.kind' } }],
  ['jobs', { kind: 'odd.kind', input: { [ODD]: ODD }, group: `group ${SOFT}` }],
]

/** Pages, and what they show when they are whole. */
const ODD_PAGES: readonly (readonly [path: string, shows: string | RegExp])[] = [
  ['tools', 'odd_tool'],
  ['tools?id=odd_tool', 'Call the tool'],
  ['tools?id=odd_tool&tab=about', 'Modes of turns'],
  ['tools?id=odd_tool&tab=schema', 'Arguments'],
  ['tools?id=odd__find&tab=about', 'Modes of turns'],
  ['mcp?id=odd', 'Disable'],
  ['mcp?id=odd&tab=tools', 'find'],
  ['providers?id=odd', 'Calls tools'],
  ['playground', 'Copy as curl'],
  ['webhooks', 'hook'],
  ['schedules?id=plain', 'Last ticks'],
  ['jobs', 'odd.kind'],
  ['dead-letters', 'Dead letters'],
  ['workflows', 'asks'],
  ['runs', 'asks'],
  ['traces?q=chat', 'POST /api/v1/chat'],
  ['usage?by=model&range=1h', 'Who used what'],
  ['configuration?q=models', 'models'],
]

/** What a reader cannot see, and what deceives: in the texts of these parts, their names for screen readers, and the title of the page. */
const hiddenIn = (parts: string) => String.raw`(() => {
  const texts = [document.title]
  for (const part of document.querySelectorAll(${JSON.stringify(parts)})) {
    texts.push(part.innerText)
    for (const element of part.querySelectorAll('[aria-label], [title]'))
      texts.push(element.getAttribute('aria-label') ?? '', element.getAttribute('title') ?? '')
  }
  if (texts.length === 1) return ['no such part']
  return texts.flatMap(text => text.match(/.{0,20}[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200E\u200F\u202A-\u202E\u2066-\u2069]/g) ?? [])
})()`
const expectClear = async (page: Page, what: string, parts = 'body') =>
  expect(await page.evaluate<string[]>(hiddenIn(parts)), what).to.deep.equal([])

describeWith('chromium', 'texts of models and strangers in the console', function () {
  this.timeout(120_000)
  const server = useConsole(async ends => {
    const model = ends.use(await openModel())
    const mcp = await openOddServer()
    ends.defer(() => mcp.close())
    const odd = { type: 'openai', preset: 'compatible', base_url: `${model.url}/v1`, models: ['m', `model ${ODD}`] }
    return {
      files: { 'workflows/asks.yaml': ASKS },
      config: {
        plugins: [PLUGIN],
        providers: { odd },
        traces: { enabled: true },
        mcp: { clients: [{ name: 'odd', url: mcp.url, effects: ['read'] }] },
      },
      env: { SVC_SECRETS_KEY: randomBytes(32).toString('base64') },
    }
  })
  const { at, open } = server
  let conversation: string
  before(async () => {
    await post(`${server.url}/api/v1/workflows/run`, { workflow: 'asks', input: { what: ODD } })
    const { body } = await post(`${server.url}/api/v1/chat`, { message: `What of ${ODD}?`, provider: 'odd', model: 'm' })
    conversation = String(body.conversation_id)
  })

  it('have a sign for each hidden character in lists, titles, tools, questions and the log', async () => {
    await using view = await open(`conversations?id=${conversation}`)
    const { page, problems } = view
    const go = (path: string) => page.goto(at(path))
    await page.locator('h2', { hasText: NAME }).waitFor()
    await page.locator('.list-name', { hasText: NAME }).waitFor()
    await page.locator('.tool summary').waitFor()
    // the text of a message stays as it was written: many scripts need marks of direction
    await expectClear(page, 'the conversation', '.list-pane, .bar, .tool')
    await page.locator('.tool summary').click()
    await expectClear(page, 'the call of a tool', '.tool')
    await page.keyboard.press('Control+k')
    await page.getByPlaceholder('Go to, start, search …').fill('pay')
    await page.getByRole('option', { name: NAME }).waitFor()
    await expectClear(page, 'the list of commands', '.palette-list')
    await go('inbox')
    await page.locator('.list-item', { hasText: NAME }).click()
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    await expectClear(page, 'the question of a run')
    await go('overview')
    await page.locator('dt', { hasText: NAME }).waitFor()
    await expectClear(page, 'the overview')
    await go('logs?q=odd%20line')
    await page.locator('.log-line', { hasText: NAME }).click()
    await page.getByRole('region', { name: 'Fields of the line' }).waitFor()
    await expectClear(page, 'the log')
    expect(problems).to.deep.equal([])
  })

  it('have a sign for each hidden character on every page that prints names from outside', async () => {
    const { url } = server
    for (const [path, body] of GIVEN) {
      const { status } = await post(`${url}/api/v1/${path}`, body)
      expect(status, path).to.be.below(300)
    }
    await until(
      () => fetch(`${url}/api/v1/tools/odd__find`),
      ({ status }) => status === 200
    )
    await using view = await open('overview')
    const { page, problems } = view
    for (const [path, shows] of ODD_PAGES) {
      await page.goto(`${url}/console/${path}`)
      await page.getByText(shows).filter({ visible: true }).first().waitFor()
      await expectClear(page, path)
    }
    // the names are there, and not only absent
    for (const path of ['tools?id=odd_tool&tab=about', 'webhooks', 'providers?id=odd']) {
      await page.goto(`${url}/console/${path}`)
      await page.getByText(NAME).filter({ visible: true }).first().waitFor()
    }
    await page.goto(`${url}/console/tools?id=odd_tool`)
    await page.getByRole('button', { name: 'Call the tool' }).click()
    await page.getByRole('region', { name: 'The call' }).getByText('completed').waitFor()
    await expectClear(page, 'the result of a tool')
    expect(problems).to.deep.equal([])
  })

  it('lead nowhere but to addresses of the web, whose host they name', async () => {
    await using view = await open(`conversations?id=${conversation}`)
    const { page, context, problems } = view
    const text = page.locator('.message-assistant .markdown').last()
    await text.getByText('mail').waitFor()
    const box = "[...document.querySelectorAll('.message-assistant .markdown')].at(-1)"
    const links = await page.evaluate<object[]>(
      `[...${box}.querySelectorAll('a')].map(({ href, rel, target, textContent: text }) => ({ href, rel, target, text }))`
    )
    const apart = { rel: 'noreferrer noopener', target: '_blank' }
    expect(links).to.deep.equal([
      { href: 'https://evil.example/login', ...apart, text: 'bank' },
      { href: 'https://bank.example@evil.example/', ...apart, text: 'bank' },
      { href: 'https://xn--bnk-6cd.example/', ...apart, text: 'bаnk' },
    ])
    const shown = await text.innerText()
    for (const host of ['bank (evil.example)', 'bаnk (xn--bnk-6cd.example)', 'own (/console/tokens)'])
      expect(shown).to.contain(host)
    expect(shown.split('\n')).to.include.members(['script', 'data'])
    const opened = context.waitForEvent('page')
    await text.getByRole('link', { name: 'bank' }).first().click()
    expect(await (await opened).evaluate('window.opener')).to.equal(null)
    for (const name of ['script', 'data', 'own', 'login']) await text.getByText(name, { exact: false }).first().click()
    expect(await page.evaluate('window.hacked')).to.equal(undefined)
    expect(page.url()).to.contain('/console/conversations')
    expect(problems).to.deep.equal([])
  })
})
