import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { startTwo } from '../support/two-workers.ts'
import { until } from '../support/wait.ts'
import { openConsole } from './support/browser.ts'
import { FLOWS } from './support/flows.ts'
import { useConsole } from './support/use-console.ts'

const STUCK = fileURLToPath(new URL('../support/stuck.ts', import.meta.url))
const KEY = 'the-key-of-the-operator'
const HEADERS = { 'x-api-key': KEY }
const REFRESHES = 10
const WORDS = Array.from({ length: 300 }, (_, at) => `word${at}`).join(' ')

/** What a page says about its records, without the times, which pass. */
const RECORDS = `[...document.querySelectorAll('main .list-item, main .table-body .table-row, main .table-row')].map(row => {
  const copy = row.cloneNode(true)
  for (const time of copy.querySelectorAll('time')) time.remove()
  return copy.textContent
})`

/** Each request has a connection of its own, so that the workers take turns. */
async function openTurns(target: string): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer((from, to) => {
    const far = request(
      new URL(from.url ?? '/', target),
      { method: from.method, headers: from.headers, agent: false },
      answer => {
        to.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(to)
      }
    )
    far.on('error', () => to.destroy())
    to.on('close', () => far.destroy())
    from.pipe(far)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

describeWith('chromium', 'the console on two workers', function () {
  this.timeout(240_000)
  const server = useConsole({
    flows: FLOWS,
    config: { plugins: [STUCK] },
    env: { SVC_API_KEY: KEY, SVC_SERVER__AUTH__ENABLED: 'true' },
    start: startTwo,
  })
  const send = (path: string, body: object = {}) => post(`${server.url}/api/v1/${path}`, body, HEADERS)

  async function signedIn(page: Page) {
    await page.getByLabel('Key or token').fill(KEY)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Sign in' }).waitFor()
  }
  /** The records of a page as soon as there are so many. */
  const records = (page: Page, count: number) =>
    until(
      () => page.evaluate<string[]>(RECORDS),
      rows => rows.length >= count
    )

  it('shows the same after each of ten refreshes, and keeps the login', async () => {
    for (const name of ['first', 'second', 'third']) {
      await send('workflows/run', { workflow: 'steps', input: { who: name, fails: name === 'third' } })
      await send('chat', { message: `Hello from ${name}` })
      await send('tokens', { name, scopes: ['read'] })
    }
    const { body: waiting } = await send('workflows/run', { workflow: 'ask', input: {} })
    await until(
      async () => (await fetch(`${server.url}/api/v1/workflows/questions`, { headers: HEADERS })).text(),
      text => text.includes(String(waiting.workflow_id))
    )
    await using turns = await openTurns(server.url)
    await using view = await openConsole(server.browser, `${turns.url}/console/overview`)
    const { page, problems } = view
    await signedIn(page)
    const workers = new Set<string>()
    for (const [path, count] of [
      ['runs', 4],
      ['conversations', 3],
      ['tokens', 3],
      ['inbox', 1],
      [`runs?id=${String(waiting.workflow_id)}`, 2],
    ] as const) {
      await page.goto(`${turns.url}/console/${path}`)
      const first = await records(page, count)
      for (let at = 0; at < REFRESHES; at++) {
        await page.reload()
        expect(await records(page, count), `${path}, refresh ${at + 1}`).to.deep.equal(first)
        expect(await page.getByLabel('Key or token').count(), 'signed out').to.equal(0)
        workers.add(await page.evaluate<string>("fetch('/pid').then(answer => answer.text())"))
      }
    }
    expect(workers.size, 'workers that have answered').to.equal(2)
    expect(problems).to.deep.equal([])
  })

  it('shows what another worker does, without a refresh', async () => {
    await using turns = await openTurns(server.url)
    await using view = await openConsole(server.browser, `${turns.url}/console/runs`)
    const { page, problems } = view
    await signedIn(page)
    await records(page, 1)
    // one of each pair of requests goes to the worker that has no connection of the page
    for (let at = 0; at < 4; at++) {
      const before = (await page.evaluate<string[]>(RECORDS)).length
      await send('workflows/run', { workflow: 'steps', input: { who: `later ${at}`, fails: false } })
      await records(page, before + 1)
    }
    expect(problems).to.deep.equal([])
  })

  it('goes on with a reply over ten refreshes while it is made', async () => {
    await using turns = await openTurns(server.url)
    await using view = await openConsole(server.browser, `${turns.url}/console/playground`)
    const { page, problems } = view
    await signedIn(page)
    await page.getByLabel('Message', { exact: true }).fill(`/pace 300\n${WORDS}`)
    await page.keyboard.press('Enter')
    const reply = page.locator('.message-assistant').last()
    await reply.getByText(/word0/).waitFor()
    for (let at = 0; at < REFRESHES; at++) {
      await page.reload()
      await reply.getByText(/word0 word1/).waitFor()
      expect(await page.getByLabel('Key or token').count(), 'signed out').to.equal(0)
    }
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('stopped', { exact: true }).waitFor()
    const text = await reply.locator('.markdown').innerText()
    expect(text).to.match(/word0 word1/)
    expect(`You said: ${WORDS}`.startsWith(text.trim()), `each word once: ${text}`).to.equal(true)
    await page.getByRole('link', { name: 'Conversation', exact: true }).click()
    await page
      .locator('.reader-scroll .message-assistant')
      .getByText(/^You said: word0 word1/)
      .waitFor()
    expect(problems).to.deep.equal([])
  })
})
