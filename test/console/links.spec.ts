import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { useConsole } from './support/use-console.ts'

const KINDS = fileURLToPath(new URL('../support/manual-jobs.ts', import.meta.url))
const TEAM = `name: pair
formation: sequential
members:
  first: { role: Writer, goal: Write, tools: [] }
  second: { role: Critic, goal: Judge, tools: [] }
`

describeWith('chromium', 'links between the pages of the console', function () {
  this.timeout(240_000)
  const server = useConsole({
    files: { 'teams/pair.yaml': TEAM },
    config: { plugins: [KINDS], providers: { local: {} }, traces: { enabled: true }, log: { level: 'debug' } },
  })
  const { at, open } = server
  const chat = (message: string, request: string) => post(`${server.url}/api/v1/chat`, { message }, { 'x-request-id': request })
  const logOf = async (page: Page, request?: string) => {
    await page.getByRole('heading', { name: 'Logs and events', level: 1 }).waitFor()
    const shown = new URL(page.url()).searchParams.get('request')
    await page.getByText(`request ${shown}`).waitFor()
    if (request !== undefined) expect(shown).to.equal(request)
    return shown
  }

  it('lead from a trace to the log of its request, and back', async () => {
    await chat('Hello', 'linked-1')
    await using view = await open('traces?request=linked-1')
    const { page } = view
    await page.locator('.list-item').click()
    await page.getByRole('link', { name: 'Log', exact: true }).click()
    await logOf(page, 'linked-1')
    await page.locator('.log-line').first().waitFor()
    await page.getByRole('link', { name: 'Its trace' }).click()
    await page.getByRole('heading', { name: 'Traces', level: 1 }).waitFor()
    await page.locator('.list-item').waitFor()
  })

  it('lead from a reply and from an error to the log of their request', async () => {
    await using view = await open('playground')
    const { page } = view
    await page.getByLabel('Message', { exact: true }).fill('Hello')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'log', exact: true }).click()
    const request = await logOf(page)
    const lines = async () =>
      ((await (await fetch(`${server.url}/api/v1/logs?request_id=${request}`)).json()) as { lines: object[] }).lines
    expect(await lines()).not.to.deep.equal([])
    await page.goto(at('providers?id=nowhere'))
    const failure = page.getByRole('alert')
    const failed = await failure.getByRole('link').innerText()
    await failure.getByRole('link').click()
    await logOf(page, failed)
    await page.locator('.log-line').first().waitFor()
  })

  it('lead from a failed job to the log of the attempt that failed', async () => {
    const { body } = await post(`${server.url}/api/v1/jobs`, { kind: 'manual.fail', input: {} })
    const id = String(body.id)
    await using view = await open(`jobs?id=${id}`)
    const { page, problems } = view
    await page.locator('.note-bad').getByRole('link', { name: 'log', exact: true }).click()
    await logOf(page, `${id}-1`)
    await page.locator('.log-line').getByText('an attempt of a job failed').waitFor()
    await page.getByRole('link', { name: 'Its trace' }).click()
    await page.locator('.list-item').getByText('job manual.fail').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('lead from a failed run of a team, and from the message that failed, to the log of the run', async () => {
    const body = JSON.stringify({ task: '/fail bad_request' })
    const headers = { 'content-type': 'application/json' }
    await (await fetch(`${server.url}/api/v1/teams/pair/run`, { method: 'POST', headers, body })).text()
    await using view = await open('teams?status=failed')
    const { page, problems } = view
    await page.getByRole('link', { name: 'pair', exact: true }).click()
    const notes = page.locator('.note-bad').getByRole('link', { name: 'log', exact: true })
    await notes.nth(1).waitFor()
    const run = new URL((await page.getByRole('link', { name: 'Open the run' }).getAttribute('href'))!, page.url())
    for (const note of await notes.all()) {
      const { searchParams } = new URL((await note.getAttribute('href'))!, page.url())
      expect(searchParams.get('request')).to.equal(run.searchParams.get('id'))
    }
    await notes.first().click()
    await logOf(page, run.searchParams.get('id')!)
    expect(problems).to.deep.equal([])
  })

  it('lead from the error of a button to the log of its request', async () => {
    const { body } = await chat('Hello', 'linked-10')
    await using view = await open(`conversations?id=${String(body.conversation_id)}`)
    const { page } = view
    const failure = { success: false, error: 'broken', error_code: 'INTERNAL_ERROR', details: {} }
    await page.route('**/fork', route => route.fulfill({ status: 500, headers: { 'x-request-id': 'linked-11' }, json: failure }))
    await page.getByRole('button', { name: 'Fork', exact: true }).click()
    await page.getByRole('alert').getByRole('link', { name: 'log', exact: true }).click()
    await logOf(page, 'linked-11')
  })

  it('lead from a conversation to its traces, which can be left for all traces', async () => {
    const { body } = await chat('Hello', 'linked-7')
    await chat('Others', 'linked-8')
    await using view = await open(`conversations?id=${String(body.conversation_id)}`)
    const { page, problems } = view
    await page.locator('.bar').getByRole('link', { name: 'Traces', exact: true }).click()
    await page.getByRole('heading', { name: 'Traces', level: 1 }).waitFor()
    await page.locator('.list-item').waitFor()
    await page.getByText(`conversation ${String(body.conversation_id)}`).waitFor()
    await page.locator('.list-item').click()
    await page.getByRole('link', { name: 'Log', exact: true }).click()
    await logOf(page, 'linked-7')
    expect(problems).to.deep.equal([])
  })

  it('lead to the traces of one request with its reads, and no choice says otherwise', async () => {
    await fetch(`${server.url}/api/v1/me`, { headers: { 'x-request-id': 'linked-9' } })
    await using view = await open('traces?request=linked-9')
    const { page, problems } = view
    await page.locator('.list-item').getByText('/api/v1/me').waitFor()
    await page.getByText('request linked-9').waitFor()
    const reads = page.getByRole('navigation', { name: 'Requests' })
    expect(await reads.count()).to.equal(0)
    // an id of any length leaves room for the way out
    const all = page.getByRole('link', { name: 'All traces', exact: true })
    await page.goto(at(`traces?request=${'l'.repeat(80)}&id=none`))
    const [box, head] = [await all.boundingBox(), await page.locator('.list-head').boundingBox()]
    expect(box!.x + box!.width).to.be.at.most(head!.x + head!.width)
    await page.goBack()
    await all.click()
    expect(await reads.locator('[data-current]').innerText()).to.equal('Without reads')
    expect(page.url()).not.to.contain('request=')
    expect(problems).to.deep.equal([])
  })

  it('lead from an event to all events and lines of its request', async () => {
    await using view = await open('logs?tab=events')
    const { page } = view
    await page.getByRole('region', { name: 'Events, newest first' }).or(page.getByText('Nothing has happened')).first().waitFor()
    await chat('Hello', 'linked-2')
    await chat('Hello', 'linked-3')
    await page.getByRole('link', { name: 'linked-2' }).first().click()
    await logOf(page, 'linked-2')
    await until(
      () => page.getByRole('link', { name: 'linked-3' }).count(),
      count => count === 0
    )
    await page.getByRole('link', { name: 'Log', exact: true }).click()
    await logOf(page, 'linked-2')
    await page.locator('.log-line').first().waitFor()
  })

  it('open a line of the log again, far from its end', async () => {
    await chat('Hello', 'linked-4')
    await using view = await open('logs?request=linked-4')
    const { page, problems } = view
    await page.locator('.log-line').first().getByRole('button').click()
    const fields = page.getByRole('region', { name: 'Fields of the line' })
    const shown = await fields.innerText()
    const address = new URL(page.url())
    expect(address.searchParams.get('line')).to.match(/^\d{4}-.*Z \w+$/)
    address.searchParams.delete('request')
    for (let time = 0; time < 30; time++) await chat('More lines', `more-${time}`)
    await page.goto(address.href)
    await fields.waitFor()
    expect(await fields.innerText()).to.equal(shown)
    await page.locator('.log-line[data-current]').waitFor()
    await page.getByRole('region', { name: 'The selected line' }).getByRole('button', { name: 'Close' }).click()
    await fields.waitFor({ state: 'detached' })
    expect(page.url()).not.to.contain('line=')
    await page.goto(at('logs?line=2020-01-01T00:00:00.000Z%20abc'))
    await page.getByText('The line of this address is not among these.').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('open an event again that came before the page was loaded', async () => {
    await using view = await open('logs?tab=events')
    const { page, problems, context } = view
    await page.getByRole('heading', { name: 'Logs and events', level: 1 }).waitFor()
    await chat('Hello', 'linked-5')
    await page.getByRole('button', { name: 'turn_completed' }).first().click()
    const event = page.getByRole('region', { name: 'The event' })
    const shown = await event.innerText()
    expect(page.url()).to.match(/event=.*after=/)
    await chat('Hello', 'linked-6')
    await page.reload()
    await event.waitFor()
    expect(await event.innerText()).to.equal(shown)
    // somebody who gets the link
    const other = await context.newPage()
    await other.goto(page.url())
    await other.getByRole('region', { name: 'The event' }).getByText('linked-5').waitFor()
    await page.goto(at('logs?tab=events&event=none&after=nonsense'))
    await page.getByText('The server no longer keeps the event of this address.').waitFor()
    expect(problems).to.deep.equal([])
  })
})
