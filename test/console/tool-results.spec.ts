import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/wait.ts'
import { type Console, expectAccessible } from './support/browser.ts'
import { type CuratedConsole, openCurated } from './support/curated-console.ts'
import { writeFlows } from './support/flows.ts'
import { writeResultPlugins } from './support/result-plugins.ts'

const FLOW = `name: finds
nodes:
  find: { type: tool, name: thing_find, arguments: { word: step }, next: app }
  app: { type: tool, name: thing_app, arguments: { word: step } }
`
const ALL = 'read,chat,tools,workflows,admin'

describeWith('chromium', 'a page for results of tools', function () {
  this.timeout(180_000)
  let curated: CuratedConsole
  let run: string

  before(async () => {
    curated = await openCurated(
      async (home, outside) => {
        await writeFlows(home, { finds: FLOW })
        return writeResultPlugins(home, outside.url)
      },
      { providers: { local: {} }, traces: { enabled: true, content: true }, chat: { tool_result_limit: 1_000_000 } }
    )
    const started = await asked('POST /api/v1/workflows/run', { workflow: 'finds', input: {} })
    run = String(started.workflow_id)
    await until(
      () => asked(`GET /api/v1/workflows/${run}/status`),
      ({ status }) => status === 'completed'
    )
  })
  after(() => curated?.[Symbol.asyncDispose]())

  const asked = async (request: string, body?: object) =>
    (await (await curated.ask(request, ALL, body)).json()) as Record<string, unknown>
  const open = (path: string) => curated.signIn(path, ALL)
  async function callTool(tool: string): Promise<Console> {
    const opened = await open(`tools?id=thing_${tool}`)
    await opened.page.getByRole('button', { name: 'Call the tool' }).click()
    await opened.page
      .getByRole('region', { name: 'The call' })
      .getByText(/^(?:completed|failed|the tool failed)$/)
      .waitFor()
    return opened
  }
  const conversationOf = async (tool: string) =>
    String((await asked('POST /api/v1/chat', { message: `/tool thing_${tool} {"word":"chat"}` })).conversation_id)
  const viewOf = (page: Page, title = 'Found', tool = 'thing_find') =>
    page.getByRole('region', { name: `${title}: result of ${tool}` })
  /** The view shows the texts of the result as they are, and nothing else of it. */
  async function expectView({ page, problems }: Console) {
    const view = viewOf(page)
    await view.getByRole('cell', { name: 'plain' }).waitFor()
    await view.getByText('From the plugin').getByText('svc-plugin-finder').waitFor()
    const shown = await view.innerText()
    expect(shown).to.contain('<img src=').and.not.to.contain('A view of the result').and.not.to.contain('claimer')
    // oxlint-disable-next-line no-control-regex -- none of them is shown
    expect(shown).not.to.match(/[\u0000-\u0008\u001B\u202A-\u202E]/)
    expect(await view.locator('img, script, iframe').count()).to.equal(0)
    await view.getByRole('link', { name: 'home' }).waitFor()
    expect(await view.getByRole('link').count()).to.equal(1)
    expect(await view.getByRole('link').getAttribute('href')).to.equal('/console/runs')
    expect(await page.evaluate('window.hit')).to.equal(undefined)
    expect(curated.outside.requests).to.deep.equal([])
    expect(problems).to.deep.equal([])
  }
  /** The app has the result, and nothing else. */
  async function expectApp({ page, problems }: Console, word: string | undefined) {
    const app = page.frameLocator('iframe')
    await app.locator('#result').getByText('onerror').waitFor()
    await app.locator('#reached').getByText('SecurityError').first().waitFor()
    const [own, request, document, fetched, storage] = JSON.parse(await app.locator('#reached').innerText()) as string[]
    expect([own, request, document, fetched, storage]).to.deep.equal([
      'null',
      'FORBIDDEN',
      'SecurityError',
      'TypeError',
      'SecurityError',
    ])
    const input = word === undefined ? {} : { word }
    expect(JSON.parse(await app.locator('#input').innerText())).to.deep.equal({ tool: 'thing_app', input, place: 'tool_result' })
    expect(curated.outside.requests).to.deep.equal([])
    // the page of a plugin that loads from elsewhere is a violation of its own policy, which its console reports
    expect(
      problems.filter(problem => !problem.includes('connect-src') && !problem.includes('Content Security Policy'))
    ).to.deep.equal([])
  }

  it('shows the result on the page of the tool, and as text if the reader wants it', async () => {
    await using opened = await callTool('find')
    const { page } = opened
    await expectView(opened)
    await expectAccessible(page, 'a result of a tool, by a page')
    await page.getByRole('button', { name: 'Show as text' }).click()
    await page.getByRole('region', { name: 'Structured result' }).getByText('"count": 2').waitFor()
    expect(await viewOf(page).count()).to.equal(0)
    await page.getByRole('button', { name: 'Show the page of svc-plugin-finder' }).click()
    await expectView(opened)
  })

  it('gets a result that is only text as text', async () => {
    await using opened = await callTool('say')
    await viewOf(opened.page, 'Said', 'thing_say').getByText('only words').waitFor()
  })

  it('is an app in a closed frame, which has the result and the arguments', async () => {
    await using opened = await callTool('app')
    await expectApp(opened, undefined)
    await opened.page.getByRole('button', { name: 'Show as text' }).click()
    await opened.page.getByRole('region', { name: 'Structured result' }).getByText('claim_app').waitFor()
    expect(await opened.page.locator('iframe').count()).to.equal(0)
  })

  for (const tool of ['huge', 'many'])
    it(`is not shown for a gigantic result: ${tool}`, async () => {
      await using opened = await callTool(tool)
      const { page, problems } = opened
      await page.getByText('The result is too large for the page of svc-plugin-finder').waitFor()
      await page.getByRole('region', { name: 'Structured result' }).waitFor()
      expect(await viewOf(page, 'Found', `thing_${tool}`).count()).to.equal(0)
      await page.getByRole('link', { name: 'Runs', exact: true }).click()
      await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
      expect(problems).to.deep.equal([])
    })

  it('is not shown for a failure', async () => {
    await using opened = await callTool('fail')
    await opened.page.getByText('it has failed').waitFor()
    expect(await opened.page.locator('.tool-app, iframe').count()).to.equal(0)
  })

  it('shows results of tools of its own plugin only, whatever it declares', async () => {
    const { pages } = (await asked('GET /api/v1/console/pages')) as { pages: { name: string; tools: string[] }[] }
    const tools = Object.fromEntries(pages.map(page => [page.name, page.tools]))
    expect(tools).to.deep.include({ claim_view: [], claim_app: [], said: ['thing_say'], found_app: ['thing_app'] })
    await using opened = await open('tools?id=calculate')
    const { page } = opened
    await page.getByRole('textbox', { name: /^expression/ }).fill('1 + 1')
    await page.getByRole('button', { name: 'Call the tool' }).click()
    await page.getByRole('region', { name: 'The call' }).getByText('completed').waitFor()
    expect(await page.locator('.tool-app, iframe').count()).to.equal(0)
    expect(await page.getByRole('button', { name: /^Show/ }).count()).to.equal(0)
  })

  it('is shown in the playground for a call of a model', async () => {
    await using opened = await open('playground')
    const { page } = opened
    const say = async (message: string) => {
      await page.getByLabel('Message', { exact: true }).fill(message)
      await page.keyboard.press('Enter')
    }
    await say('/tool thing_find {"word":"first"}')
    await expectView(opened)
    await say('/tool thing_app {"word":"second"}')
    await expectApp(opened, 'second')
    // an app that is no longer the newest runs only when the reader wants it
    await say('/tool thing_say {}')
    await viewOf(page, 'Said', 'thing_say').waitFor()
    await expectAccessible(page, 'results by pages in the playground')
  })

  it('is shown in conversations; an app when the reader wants it', async () => {
    await using opened = await open(`conversations?id=${await conversationOf('find')}`)
    await expectView(opened)
    await expectAccessible(opened.page, 'a result by a page in a conversation')
    await using second = await open(`conversations?id=${await conversationOf('app')}`)
    await second.page.getByText('thing_app').first().waitFor()
    await second.page.getByRole('button', { name: 'Show the page of svc-plugin-finder' }).waitFor()
    expect(await second.page.locator('iframe').count()).to.equal(0)
    await second.page.getByRole('button', { name: 'Show the page of svc-plugin-finder' }).click()
    await expectApp(second, 'chat')
    await second.page.getByRole('button', { name: 'Show as text' }).click()
    await second.page.getByRole('region', { name: 'Result of thing_app, as text' }).waitFor()
  })

  it('is shown for the step of a run', async () => {
    await using opened = await open(`runs?id=${run}&step=find`)
    await expectView(opened)
    await opened.page.goto(`${curated.service.url}/console/runs?id=${run}&step=app`)
    await opened.page.getByRole('button', { name: 'Show the page of svc-plugin-finder' }).click()
    await expectApp(opened, 'step')
  })

  it('is shown in a trace that has recorded the result', async () => {
    const conversation = await conversationOf('find')
    const [trace] = await until(
      async () => ((await asked(`GET /api/v1/traces?conversation=${conversation}`)) as { traces: { trace_id: string }[] }).traces,
      traces => traces.length > 0
    )
    await using opened = await open(`traces?id=${trace!.trace_id}`)
    const { page } = opened
    await page.getByRole('option', { name: /execute_tool thing_find/ }).click()
    await expectView(opened)
    await page.getByRole('button', { name: 'Show as text' }).click()
    await page
      .getByRole('region', { name: 'Attributes of execute_tool thing_find' })
      .getByText('gen_ai.tool.call.result')
      .waitFor()
  })
})
