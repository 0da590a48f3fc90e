import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { FLOWS } from './support/flows.ts'
import { useConsole } from './support/use-console.ts'

const TOOLS = fileURLToPath(new URL('../support/call-tools.ts', import.meta.url))

describeWith('chromium', 'questions and replays in the console', function () {
  this.timeout(240_000)
  const server = useConsole({ flows: FLOWS, config: { plugins: [TOOLS], providers: { local: {} } } })
  const { open } = server

  /** Another client, which waits for a person: all that it gets. */
  const waiting = async (path: string, body: object): Promise<string> => {
    const response = await fetch(`${server.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ interactive: true, ...body }),
    })
    return response.text()
  }
  const chat = (message: string) => waiting('/api/v1/chat/stream', { message })
  const call = (tool: string) => waiting(`/api/v1/tools/${tool}/call`, { arguments: {} })

  async function openQuestion(page: Page, text: string) {
    await page.locator('.list-item', { hasText: text }).click()
    return page.getByRole('form', { name: /^Question of / })
  }
  const closed = (page: Page) => page.getByText('Nothing waits for you').waitFor()

  it('of a chat are answered in the inbox, and the turn of the other client goes on', async () => {
    await using view = await open('inbox')
    const { page, problems } = view
    await closed(page)
    const allowed = chat('/tool consent {}')
    const question = await openQuestion(page, 'consent')
    await question.getByText(/^Expires in \d+ s$/).waitFor()
    expect(await page.title()).to.match(/^\(1\) Inbox/)
    await page.getByText('chat', { exact: true }).waitFor()
    await question.getByRole('button', { name: 'Allow' }).click()
    expect(await allowed).to.match(/pid \d+/)
    await closed(page)
    const denied = chat('/tool consent {}')
    await (await openQuestion(page, 'consent')).getByRole('button', { name: 'Deny' }).click()
    expect(await denied)
      .to.contain('"success":false')
      .and.not.match(/pid \d+/)
    await closed(page)
    expect(problems).to.deep.equal([])
  })

  it('of a call of a tool are answered in the inbox: whether it may run, and with a form', async () => {
    await using view = await open('inbox?kind=chat')
    const { page, problems } = view
    const allowed = call('consent')
    await (await openQuestion(page, 'consent')).getByRole('button', { name: 'Allow' }).click()
    expect(await allowed).to.match(/pid \d+/)
    const filled = call('form')
    const form = await openQuestion(page, 'form')
    await form.getByLabel(/^name/).fill('Ada')
    await form.getByRole('button', { name: 'Send' }).click()
    expect(await filled).to.contain('hello Ada')
    // the next question of the tool looks like this one
    await closed(page)
    const declined = call('form')
    await (await openQuestion(page, 'form')).getByRole('button', { name: 'Decline' }).click()
    expect(await declined).to.contain('the user said decline')
    await closed(page)
    expect(problems).to.deep.equal([])
  })

  it('replays a completed run with another input', async () => {
    const { body } = await post(`${server.url}/api/v1/workflows/run`, { workflow: 'steps', input: { who: 'Ada', fails: false } })
    const former = String(body.workflow_id)
    await using view = await open(`runs?id=${former}`)
    const { page, problems } = view
    await page.locator('.bar').getByText('completed').waitFor()
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Replay the run' })
    await dialog.getByLabel('Input').fill('{ "who": "Grace", "fails": false }')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.locator('.bar').getByText('completed').waitFor()
    await page.waitForURL(url => url.searchParams.get('id') !== former)
    await page.getByRole('link', { name: 'Input and result' }).click()
    await page.getByLabel('Result', { exact: true }).getByText('hello Grace!').waitFor()
    await page.getByText(/^repeats/).waitFor()
    expect(problems).to.deep.equal([])
  })
})
