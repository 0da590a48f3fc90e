import { expect } from 'chai'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { type FakeUpstream, openUpstream } from '../support/upstream.ts'
import { useConsole } from './support/use-console.ts'

const TEAM = `name: pair
formation: sequential
members:
  first: { role: Writer, goal: Write, tools: [] }
  second: { role: Critic, goal: Judge, tools: [] }
`
/** A price in cents: each token is worth one. */
const PRICE = { input: 10_000, output: 10_000 }

const money = (cost: number) => cost.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 4 })

interface Trace {
  readonly trace_id: string
  readonly cost: number
}
interface TeamRun {
  readonly spent: { readonly cost: number }
  readonly members: readonly { readonly name: string; readonly spent: { readonly cost: number } }[]
}

describeWith('chromium', 'models, their costs and their failures in the console', function () {
  this.timeout(240_000)
  let upstream: FakeUpstream
  const server = useConsole(async ends => {
    upstream = ends.use(await openUpstream((_request, reply) => reply.json(500, { error: { message: 'down for repair' } })))
    const config = {
      chat: { policy: { attempts: 1, breaker_failures: 2, breaker_open_ms: 600_000 } },
      providers: { local: {}, down: { type: 'openai', base_url: `${upstream.url}/v1`, models: ['m'] } },
      models: { prices: { 'local/local-1': PRICE }, currency: 'EUR' },
      traces: { enabled: true },
    }
    const profiles = 'profiles: { default: {}, small: { model: local-small } }\n'
    return { config, files: { 'teams/pair.yaml': TEAM, 'profiles.yaml': profiles } }
  })
  const { at, open } = server
  const read = async <T>(path: string) => (await fetch(`${server.url}${path}`)).json() as Promise<T>

  it('shows what a trace and each call of a model cost, and nothing for a model without a price', async () => {
    const chat = (id: string, model: string) =>
      post(`${server.url}/api/v1/chat`, { message: 'What does it cost?', model }, { 'x-request-id': id })
    await chat('priced', 'local-1')
    await chat('free', 'local-small')
    const { traces } = await read<{ traces: Trace[] }>('/api/v1/traces?request=priced')
    const [{ cost, trace_id: id }] = traces as [Trace]
    expect(cost).to.be.greaterThan(0)
    await using view = await open('traces?request=priced')
    const { page, problems } = view
    await page.locator('.list-item', { hasText: `cost ${money(cost)}` }).click()
    await page
      .locator('.bar')
      .getByText(`cost ${money(cost)}`)
      .waitFor()
    expect(page.url()).to.contain(id)
    const span = page.getByRole('region', { name: 'The selected span' })
    for (const name of ['chat local-1', 'invoke_agent']) {
      await page.getByRole('option', { name }).click()
      await span.getByRole('heading', { name, exact: false }).waitFor()
      await span.getByText(`cost ${money(cost)}`).waitFor()
    }
    await page.goto(at('traces?request=free'))
    await page.locator('.list-item').first().click()
    await page.locator('.bar').getByText('tokens').waitFor()
    expect(await page.locator('.list-item, .bar').getByText('cost').count()).to.equal(0)
    expect(problems).to.deep.equal([])
  })

  it('shows what a team and each of its members cost', async () => {
    await using view = await open('teams')
    const { page, problems } = view
    await page.getByRole('button', { name: 'Run a team' }).click()
    await page.getByRole('dialog').getByLabel('Task').fill('Say hello')
    await page.getByRole('dialog').getByRole('button', { name: 'Start' }).click()
    await page.locator('.bar').getByText('completed').waitFor()
    const id = new URL(page.url()).searchParams.get('id')
    const { spent, members } = await read<TeamRun>(`/api/v1/teams/runs/${id}`)
    expect(spent.cost).to.be.greaterThan(0)
    await page
      .locator('.bar')
      .getByText(`cost ${money(spent.cost)}`)
      .waitFor()
    for (const member of members)
      await page
        .locator('.member', { hasText: member.name })
        .getByText(`cost ${money(member.spent.cost)}`)
        .waitFor()
    await page.goto(at('teams'))
    await page.getByRole('cell', { name: money(spent.cost), exact: true }).waitFor()
    expect(problems).to.deep.equal([])
  })

  it('shows prices, and that a provider fails until its breaker is open', async () => {
    await using view = await open('providers?id=local')
    const { page, problems } = view
    await page.getByRole('columnheader', { name: 'Price in / out, EUR' }).waitFor()
    const row = (model: RegExp) => page.getByRole('row', { name: model })
    await row(/^local-1 closed .* 10,000 \/ 10,000$/).waitFor()
    await row(/^local-small closed .* –$/).waitFor()
    await page.goto(at('providers?id=down'))
    await row(/^m closed /).waitFor()
    await page.locator('.bar').getByText('failing').waitFor()
    await page.getByRole('alert').getByText('the upstream answered 500: down for repair').waitFor()
    for (const failures of [1, 2]) {
      await page.getByRole('button', { name: 'Send a short message' }).click()
      await page.getByRole('alert').getByText('PROVIDER_ERROR').waitFor()
      await row(new RegExp(`^m .*down for repair.* ${failures} ${failures} `)).waitFor()
    }
    await row(/^m .* open until /).waitFor()
    expect(upstream.received.filter(({ method }) => method === 'POST').length).to.equal(2)
    expect(problems).to.deep.equal([])
  })

  it('chats with the chosen profile and mode', async () => {
    await using view = await open('playground')
    const { page, problems } = view
    await page.getByLabel('Profile').selectOption('small')
    await page.getByLabel(/^Mode(?!l)/).selectOption('plan')
    await page.getByLabel('Message', { exact: true }).fill('Hello')
    await page.keyboard.press('Enter')
    await page.getByText('local / local-small').waitFor()
    await page.getByText(/tokens in/).waitFor()
    await page.getByRole('link', { name: 'log', exact: true }).click()
    await page.getByRole('heading', { name: 'Logs and events', level: 1 }).waitFor()
    await page.goto(at(`traces?request=${new URL(page.url()).searchParams.get('request')}`))
    await page.locator('.list-item').click()
    await page.getByRole('option', { name: 'invoke_agent' }).click()
    await page
      .getByLabel(/^Attributes of invoke_agent/)
      .getByText('"svc.mode": "plan"')
      .waitFor()
    expect(problems).to.deep.equal([])
  })
})
