import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { hostileCommand } from '../../support/hostile.ts'
import { newHome, post, type Service, startService } from '../../support/service.ts'
import { until } from '../../support/wait.ts'
import { writeFlows } from './flows.ts'
import { writeViewPlugin } from './view-plugins.ts'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))
/** The command of a server is longer than its line, wherever the repository is. */
const LONG_ARGUMENT = `--folders=${'/a-long-folder'.repeat(20)}`
const TEAM = `name: pair
description: Writes and judges
formation: sequential
members:
  first: { role: Writer, goal: Write, tools: [] }
  second: { role: Critic, goal: Judge, tools: [] }
`
const table = (request: string, ...first: readonly object[]) => ({
  parts: [...first, { type: 'table', title: 'Table', request, items: 'things', columns: [{ title: 'Name', value: 'name' }] }],
})
const COUNT = { type: 'stats', title: 'Count', request: 'GET /views/count', stats: [{ title: 'All', value: 'all' }] }

/** A server that has something of each kind, and the ids of it. */
export interface FilledServer {
  readonly service: Service
  readonly ids: Readonly<Record<string, string>>
}

/** Starts a server with tools, workflows, a team, an MCP server whose tools have changed, a page of a plugin, and one of each record. */
export async function openFilled(ends: AsyncDisposableStack): Promise<FilledServer> {
  const home = await newHome()
  ends.defer(() => rm(home, { recursive: true, force: true }))
  await writeFlows(home)
  await mkdir(join(home, 'teams'))
  await writeFile(join(home, 'teams', 'pair.yaml'), TEAM)
  const plugins = [at('odd-tools.ts'), at('../../support/manual-jobs.ts'), await viewPlugin(home)]
  const { command, args } = hostileCommand({ fickle: 'start' })
  const clients = [{ name: 'fixed', command, args: [...args, LONG_ARGUMENT] }]
  const models = { prices: { 'local/local-1': { input: 10_000, output: 10_000 } } }
  await writeFile(
    join(home, 'svc.config.json'),
    JSON.stringify({ plugins, providers: { local: {} }, models, mcp: { clients }, traces: { enabled: true } })
  )
  const env = { SVC_SECRETS_KEY: randomBytes(32).toString('base64') }
  const service = ends.use(await startService({ home, env }))
  return { service, ids: await fillServer(service.url) }
}

/** A server where nothing has happened, with the same page of a plugin. */
export async function openBare(ends: AsyncDisposableStack): Promise<Service> {
  const home = await newHome()
  ends.defer(() => rm(home, { recursive: true, force: true }))
  await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [await viewPlugin(home)] }))
  return ends.use(await startService({ home }))
}

const viewPlugin = (home: string) =>
  writeViewPlugin(home, {
    name: 'views',
    rights: ['GET /views/*'],
    pages: {
      things: { title: 'Things', view: table('GET /views/things', COUNT) },
      nothing: { title: 'Things', view: table('GET /views/nothing') },
    },
    answers: { things: '{"things":[{"name":"One"},{"name":"Two"}]}', nothing: '{"things":[]}', count: '{"all":2}' },
  })

async function fillServer(url: string): Promise<Record<string, string>> {
  const send = async (path: string, body: object = {}) => {
    const answer = await post(`${url}/api/v1/${path}`, body)
    if (answer.status >= 400) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const get = async (path: string) => (await fetch(`${url}/api/v1/${path}`)).json() as Promise<Record<string, unknown>>
  const { conversation_id: conversation } = await send('chat', { message: '/tool calculate {"expression": "6*7"}' })
  const run = async (workflow: string, input: object) => String((await send('workflows/run', { workflow, input })).workflow_id)
  const failed = await run('steps', { who: 'Ada', fails: true })
  await run('steps', { who: 'Ada', fails: false })
  await run('ask', {})
  await send('jobs', { kind: 'manual.echo', input: { say: 'hello' } })
  const { jobs } = (await get('jobs')) as { jobs: { id: string }[] }
  await send('schedules', { name: 'nightly', cron: '0 3 * * *', job: { kind: 'manual.echo', input: { say: 'hi' } } })
  await send('tokens', { name: 'someone', scopes: ['read'] })
  const { webhook } = (await send('webhooks', { url: 'https://receiver.example/', name: 'Mine' })) as { webhook: { id: string } }
  const body = JSON.stringify({ task: 'Say hello' })
  await (
    await fetch(`${url}/api/v1/teams/pair/run`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  ).text()
  const { runs } = (await get('teams/runs')) as { runs: { run_id?: string; id?: string }[] }
  await changeMcpTools(get, send)
  const { traces } = (await until(
    () => get('traces?q=chat'),
    answer => (answer.traces as unknown[]).length > 0
  )) as { traces: { trace_id: string }[] }
  return {
    conversation: String(conversation),
    run: failed,
    job: jobs[0]!.id,
    webhook: webhook.id,
    team: String(runs[0]!.run_id ?? runs[0]!.id),
    trace: traces[0]!.trace_id,
  }
}

type Get = (path: string) => Promise<Record<string, unknown>>

/** Each process of the MCP server describes a tool otherwise. */
async function changeMcpTools(get: Get, send: (path: string) => Promise<unknown>): Promise<void> {
  const server = () => get('mcp/servers/fixed')
  await until(server, ({ state }) => state === 'connected')
  await send('mcp/servers/fixed/disable')
  await send('mcp/servers/fixed/enable')
  await until(server, ({ changed }) => (changed as string[] | undefined)?.includes('echo') === true)
}
