import { randomBytes } from 'node:crypto'
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newHome, post, startService } from '../../support/service.ts'
import { until } from '../../support/wait.ts'
import { openShopModel } from './shop-model.ts'

const at = (name: string) => fileURLToPath(new URL(name, import.meta.url))

const WORKFLOWS = {
  'late-order': `# What happens with an order that came late.
name: late-order
description: Finds a late order, writes to the customer, and asks a person before it refunds
inputs:
  type: object
  properties: { order: { type: string, title: Order, pattern: "^A-[0-9]{4}$" } }
  required: [order]
nodes:
  find: { type: tool, name: find_order, arguments: { order: "\${{ input.order }}" }, next: write }
  write:
    type: parallel
    bodies:
      letter: { type: agent, prompt: "Write a short letter about \${{ input.order }}", tools: [] }
      subject: { type: agent, prompt: "Write a subject line about \${{ input.order }}", tools: [] }
    next: approve
  approve:
    type: human
    message: "Refund 10 % of order \${{ input.order }}?"
    branches: { approved: refund, rejected: end }
  refund:
    type: tool
    name: refund_order
    arguments: { order: "\${{ input.order }}", amount: 12.95, reason: late }
    next: done
  done: { type: transform, value: { order: "\${{ input.order }}", refunded: 12.95 } }
`,
  'daily-report': `name: daily-report
description: Counts the orders of a day and writes a report
inputs: { type: object, properties: { day: { type: string, title: Day } }, required: [day] }
nodes:
  orders: { type: transform, value: { day: "\${{ input.day }}", count: 48 }, next: report }
  report: { type: transform, value: "\${{ string(nodes.orders.count) }} orders on \${{ nodes.orders.day }}" }
`,
  'import-stock': `name: import-stock
description: Imports the stock of a supplier, and checks it
inputs: { type: object, properties: { supplier: { type: string, title: Supplier } }, required: [supplier] }
nodes:
  read: { type: transform, value: { supplier: "\${{ input.supplier }}", lines: 120 }, next: check }
  check: { type: condition, if: "nodes.read.supplier == 'nordwind'", branches: { true: convert, false: store } }
  convert: { type: tool, name: find_order, arguments: { order: A-9999 }, next: store }
  store: { type: transform, value: "\${{ nodes.read.lines }}" }
`,
} as const

const TEAM = `name: letters
description: Writes a letter to a customer, and judges it
formation: sequential
members:
  writer: { role: Writer, goal: Write a reply to the customer, tools: [] }
  editor: { role: Editor, goal: Review the letter and judge it, tools: [] }
`

/** A server with what a shop does in a day, and where its parts are. */
export interface Scene extends AsyncDisposable {
  readonly url: string
  /** A conversation, a run, a trace and others, by the name of the picture that shows it. */
  readonly ids: Readonly<Record<string, string>>
  /** Asks the model something. */
  readonly chat: (message: string) => Promise<void>
}

type Caller = ReturnType<typeof callerOf>

/** Signs in to the console, too. */
export const SCENE_KEY = 'the-key-of-the-operator'
const HEADERS = { 'content-type': 'application/json', 'x-api-key': SCENE_KEY }

function callerOf(url: string) {
  const send = async (path: string, body: unknown = {}) => {
    const answer = await post(`${url}/api/v1/${path}`, body, HEADERS)
    if (answer.status >= 400) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const get = async (path: string) =>
    (await fetch(`${url}/api/v1/${path}`, { headers: HEADERS })).json() as Promise<Record<string, unknown>>
  return { send, get }
}

/** A real server with a model, tools, an MCP server, and seeded records. */
export async function openScene(): Promise<Scene> {
  await using ends = new AsyncDisposableStack()
  const home = await newHome()
  ends.defer(() => rm(home, { recursive: true, force: true }))
  const model = ends.use(await openShopModel())
  const later = join(home, 'later')
  await writeHome(home, { model: model.url, later })
  const service = ends.use(await startService({ home, env: environment(home) }))
  const caller = callerOf(service.url)
  const ids = {
    ...(await seedChats(caller)),
    ...(await seedRuns(caller)),
    ...(await seedJobs(caller)),
    ...(await seedTeam(service.url, caller)),
    ...(await seedManagement(caller)),
  }
  await changeMcpTool(caller, later)
  return {
    url: service.url,
    ids,
    chat: async message => void (await caller.send('chat', { message })),
    ...endOf(ends.move()),
  }
}

const endOf = (ends: AsyncDisposableStack) => ({ [Symbol.asyncDispose]: () => ends.disposeAsync() })

/** The pictures show the name of the server, not where it lies. */
const environment = (home: string) => ({
  PATH: `${join(home, 'bin')}${delimiter}${process.env.PATH}`,
  SVC_API_KEY: SCENE_KEY,
  SVC_SERVER__AUTH__ENABLED: 'true',
  SVC_SECRETS_KEY: randomBytes(32).toString('base64'),
  SVC_TRACES__ENABLED: 'true',
})

async function writeHome(home: string, { model, later }: { readonly model: string; readonly later: string }): Promise<void> {
  for (const folder of ['bin', 'workflows', 'teams']) await mkdir(join(home, folder))
  for (const [name, text] of Object.entries(WORKFLOWS)) await writeFile(join(home, 'workflows', `${name}.yaml`), text)
  await writeFile(join(home, 'teams', 'letters.yaml'), TEAM)
  const program = join(home, 'bin', 'shipping-server')
  await writeFile(program, `#!/bin/sh\nexec "${process.execPath}" "${at('shipping-server.mjs')}" "${later}"\n`)
  await chmod(program, 0o755)
  const models = [
    { id: 'large-3', context: 200_000, output: 32_000 },
    { id: 'small-3', context: 128_000, output: 8_000 },
  ]
  const config = {
    plugins: [at('shop.ts')],
    providers: { studio: { type: 'openai', preset: 'compatible', base_url: `${model}/v1`, models }, local: {} },
    models: { prices: { 'studio/large-3': { input: 3, output: 15 }, 'studio/small-3': { input: 0.25, output: 1.25 } } },
    mcp: { clients: [{ name: 'shipping', command: 'shipping-server' }] },
    webhooks: { allow: ['127.0.0.0/8'] },
  }
  await writeFile(join(home, 'svc.config.yaml'), JSON.stringify(config))
  const profiles = 'profiles:\n  default: { provider: studio, model: large-3, tools: [find_order, refund_order, calculate] }\n'
  await writeFile(join(home, 'profiles.yaml'), profiles)
}

async function seedChats({ send, get }: Caller) {
  const late = await send('chat', { message: 'Why is the order A-1042 late, and what do we offer?' })
  const id = String(late.conversation_id)
  await send('chat', { conversation_id: id, message: 'Good. Refund it, and tell the customer.' })
  for (const message of [
    'What are your opening hours?',
    'How do I return a pair of shoes?',
    'Write a reply to Mara about the delay',
  ])
    await send('chat', { message, model: 'small-3' })
  const traces = await until(
    async () => (await get('traces?q=chat')) as { traces: { id?: string; trace_id?: string; name: string }[] },
    answer => answer.traces.length >= 5
  )
  const first = traces.traces.at(-1)!
  return { conversation: id, trace: String(first.id ?? first.trace_id) }
}

async function seedRuns({ send, get }: Caller) {
  const run = async (workflow: string, input: object) => String((await send('workflows/run', { workflow, input })).workflow_id)
  for (const day of ['2026-03-01', '2026-03-02', '2026-03-03']) await run('daily-report', { day })
  const failed = await run('import-stock', { supplier: 'nordwind' })
  await run('import-stock', { supplier: 'südwind' })
  const waiting = await run('late-order', { order: 'A-1042' })
  await run('late-order', { order: 'A-1057' })
  await until(
    async () => ((await get('workflows/questions')) as { questions: unknown[] }).questions.length,
    count => count === 2
  )
  return { waiting, failed }
}

async function seedJobs({ send, get }: Caller) {
  await send('schedules', {
    name: 'invoices',
    description: 'Sends the invoices of the day',
    cron: '30 18 * * 1-5',
    time_zone: 'Europe/Berlin',
    job: { kind: 'invoices.send', input: { day: 'today' } },
  })
  await send('schedules', { name: 'stock', every_ms: 21_600_000, job: { kind: 'stock.import' } })
  await send('schedules/invoices/run')
  for (const day of ['2026-03-01', '2026-03-02']) await send('jobs', { kind: 'invoices.send', input: { day } })
  await send('jobs', { kind: 'stock.import' })
  await send('jobs', { kind: 'search.index' })
  await send('jobs', {
    kind: 'invoices.send',
    input: { day: '2026-03-04' },
    due_at: new Date(Date.now() + 86_400_000).toISOString(),
  })
  const listed = await until(
    async () => (await get('jobs')) as { jobs: { id: string; kind: string; state: string }[] },
    ({ jobs }) => jobs.some(({ state }) => state === 'failed') && jobs.some(({ state }) => state === 'running')
  )
  return { job: listed.jobs.find(({ kind }) => kind === 'invoices.send')!.id }
}

async function seedTeam(url: string, { get }: Caller) {
  const answer = await fetch(`${url}/api/v1/teams/letters/run`, {
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify({ task: 'Answer Mara, whose order came late' }),
  })
  await answer.text()
  const { runs } = (await get('teams/runs')) as { runs: { id?: string; run_id?: string }[] }
  return { team: String(runs[0]!.id ?? runs[0]!.run_id) }
}

async function seedManagement({ send }: Caller) {
  await send('tokens', { name: 'ci', scopes: ['read', 'workflows'] })
  await send('tokens', { name: 'support-desk', scopes: ['read', 'chat'], ttl_s: 86_400 })
  const { webhook } = (await send('webhooks', {
    name: 'Shop office',
    url: 'https://hooks.shop.example/svc',
    types: ['run_*', 'question_*'],
  })) as { webhook: { id: string } }
  return { webhook: webhook.id }
}

/** After the approval of its tools, the server says other words. */
async function changeMcpTool({ send, get }: Caller, later: string): Promise<void> {
  const server = () => get('mcp/servers/shipping') as Promise<{ state: string; changed?: unknown[]; tools?: unknown }>
  await until(server, ({ state }) => state === 'ready' || state === 'connected')
  await writeFile(later, '')
  await send('mcp/servers/shipping/disable')
  await send('mcp/servers/shipping/enable')
  await until(server, ({ changed = [] }) => changed.length > 0)
}
