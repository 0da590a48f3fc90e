import { readFile, rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { codeOf, systemContext } from '@svc/core'
import type { McpServerInfo } from '@svc/core/contracts'
import { reachServer } from '@svc/runtime'
import { expect } from 'chai'
import { wait } from './support/wait.ts'
import { createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { hostileCommand } from './support/hostile.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { sideBySideIn } from './support/side-by-side.ts'
import { configureFew } from './support/tides.ts'

const DOOR = fileURLToPath(new URL('./support/mcp-door.ts', import.meta.url))
/** A state that has not come about by then never will. */
const LIMIT_MS = 30_000
/** So long a dead worker's lease lasts where nobody frees it. */
const LEASE_MS = 30_000
const ctx = () => systemContext(AbortSignal.timeout(30_000))

interface Seen {
  readonly worker: number
  readonly servers: readonly McpServerInfo[]
}
interface Said {
  readonly worker: number
  readonly last?: { readonly result: { readonly content: readonly { readonly text: string }[] } }
  readonly class?: string
}

/** A request over a connection of its own: whichever worker has its turn. */
const fresh = (service: Service) => createClient(service.url, { keepAlive: false })
const call = async (service: Service, tool: string, args = {}) =>
  (await fresh(service).post('/mcp-call', { server: 'one', tool, args })).body as Said
const textOf = ({ last }: Said) => last?.result.content[0]?.text ?? ''
const UP_TO_8 = Array.from({ length: 8 }, (_, at) => `${at}`)
const echoes = (service: Service) => Promise.all(UP_TO_8.map(text => call(service, 'echo', { text }).catch(lostWithIt)))

/** How the servers stand, as some worker sees it; none where that one has just died. */
const listed = async (service: Service): Promise<Seen> => {
  const answer = await fresh(service).get('/mcp-list').catch(lostWithIt)
  return 'body' in answer ? (answer.body as Seen) : { worker: 0, servers: [] }
}

/** Asks until so many workers have answered, and it is true of all. */
async function everywhere(service: Service, workers: number, isTrue: (info: McpServerInfo) => boolean): Promise<void> {
  const endsAt = performance.now() + LIMIT_MS
  for (const seen = new Map<number, boolean>(); [...seen.values()].filter(Boolean).length < workers; ) {
    if (performance.now() > endsAt) throw new Error(`it never came about: ${JSON.stringify([...seen])}`)
    const { worker, servers } = await listed(service)
    if (servers[0]) seen.set(worker, isTrue(servers[0]))
    await wait()
  }
}

/** The processes of the server that so many workers call. */
async function processes(service: Service, workers: number): Promise<number[]> {
  const asked = new Set<number>()
  const pids = new Set<number>()
  while (asked.size < workers) {
    const said = await call(service, 'pid')
    expect(said.last, JSON.stringify(said)).to.not.equal(undefined)
    asked.add(said.worker)
    pids.add((JSON.parse(textOf(said)) as { pid: number }).pid)
  }
  return [...pids]
}

/** The one process that two workers call once none of these is called any more. */
async function taken(service: Service, before: readonly number[]): Promise<number> {
  for (const endsAt = performance.now() + LIMIT_MS; performance.now() < endsAt; ) {
    if ((await listed(service)).servers[0]?.state !== 'connected') {
      await wait() // the new owner connects
      continue
    }
    const [pid = 0, ...others] = await processes(service, 2)
    if (others.length === 0 && !before.includes(pid)) return pid
    await wait()
  }
  throw new Error('nobody has taken it over')
}

/** Who started a process. */
async function parentOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Calls until one is answered, for less than a lease lasts. */
async function goesOn(service: Service): Promise<void> {
  const endsAt = performance.now() + LEASE_MS - 5_000
  for (; textOf(await call(service, 'echo', { text: 'on' }).catch(lostWithIt)) !== 'on'; await wait())
    expect(performance.now(), 'calls go on').to.be.below(endsAt)
}

/** Answers when a process has ended. */
async function ended(pid: number): Promise<void> {
  for (const endsAt = performance.now() + LIMIT_MS; isAlive(pid); await wait())
    expect(performance.now(), `process ${pid} lives on`).to.be.below(endsAt)
}

/** The worker that was killed had connections of its own. */
const lostWithIt = (error: unknown): Said => {
  if (!['ECONNRESET', 'ECONNREFUSED'].includes(codeOf(error) ?? '')) throw error
  return { worker: 0, class: 'connection_refused' }
}

describe('a tool server behind several workers', () => {
  const it = sideBySideIn<string>(async run => {
    const home = await newHome()
    const clients = [{ name: 'one', ...hostileCommand() }]
    await configureFew(home, { plugins: [DOOR], mcp: { clients } }, ['admin-api', 'mcp-client'])
    await run(home).finally(() => rm(home, { recursive: true, force: true }))
  })

  it('runs as one process for all workers; another worker takes over when its owner is killed, and calls continue', async home => {
    await using service = await startService({ home, args: ['--workers', '4'] })
    await service.seen(/"event":"worker_ready"/, 3)
    await everywhere(service, 4, info => info.state === 'connected' && info.tools.includes('echo'))
    const [pid = 0, ...others] = await processes(service, 4)
    expect(others, 'one process for all').to.deep.equal([])

    process.kill(await parentOf(pid), 'SIGKILL')
    const said = await echoes(service)
    expect(said.filter(echoe => textOf(echoe) === '' && echoe.class !== 'connection_refused')).to.deep.equal([])
    await goesOn(service)
    expect((await echoes(service)).map(textOf), 'none is lost from then on').to.deep.equal(UP_TO_8)
    await service.seen(/"event":"worker_ready"/, 4)
    const [next = 0, ...more] = await processes(service, 4)
    expect(more).to.deep.equal([])
    await ended(pid)

    const killedAt = Date.now()
    process.kill(await parentOf(next), 'SIGKILL')
    await everywhere(service, 3, info => info.state === 'connected' && info.since >= killedAt)
  })

  it('is disabled in all workers if its tool descriptions changed after a restart, until they are approved', async home => {
    const clients = [{ name: 'one', ...hostileCommand({ fickle: 'start' }) }]
    await configureFew(home, { plugins: [DOOR], mcp: { clients } }, ['admin-api', 'mcp-client'])
    await using service = await startService({ home, args: ['--workers', '2'] })
    await everywhere(service, 2, info => info.state === 'connected' && info.tools.includes('echo'))
    const [pid = 0] = await processes(service, 2)
    process.kill(pid, 'SIGKILL')
    await everywhere(service, 2, info => info.state === 'degraded')
    const [next = 0] = await processes(service, 2)
    expect(next).to.not.equal(pid)
    expect((await echoes(service)).map(textOf)).to.deep.equal(UP_TO_8.map(() => ''))
    const shown = await runSvc(['mcp', 'tools', 'one'], { home })
    expect(shown.out).to.include(`For the ${next}. time.`)
    expect((await runSvc(['mcp', 'approve', 'one', 'echo'], { home })).code).to.equal(0)
    await everywhere(service, 2, info => info.state === 'connected')
    expect((await echoes(service)).map(textOf)).to.deep.equal(UP_TO_8)
  })

  it('starts with the next worker after all have crashed, without waiting for the old lease to expire', async home => {
    await using service = await startService({ home })
    await everywhere(service, 1, info => info.state === 'connected')
    process.kill(await parentOf((await processes(service, 1))[0]!), 'SIGKILL')
    await goesOn(service)
  })

  it('moves to the new workers in a reload without failed calls, and a command enables or disables it on all workers', async home => {
    await using service = await startService({ home, args: ['--workers', '2'] })
    await everywhere(service, 2, info => info.state === 'connected')
    const before = await processes(service, 2)
    const slow = call(service, 'sleep', { ms: 500 })
    using server = await reachServer(home)
    expect((await server.control.reload(ctx())).problems).to.deep.equal([])
    const said = await echoes(service)
    expect(said.map(textOf), JSON.stringify(said)).to.deep.equal(UP_TO_8)
    expect(textOf(await slow)).to.equal('slept')
    const pid = await taken(service, before)

    expect((await runSvc(['mcp', 'disable', 'one'], { home })).out).to.equal('one is disabled\n')
    await everywhere(service, 2, info => info.state === 'disabled')
    expect(await call(service, 'echo')).to.include({ class: 'connection_refused' })
    await ended(pid)
    expect((await runSvc(['mcp', 'enable', 'one'], { home })).code).to.equal(0)
    await everywhere(service, 2, info => info.state === 'connected')
    expect(textOf(await call(service, 'echo', { text: 'back' }))).to.equal('back')
  })
})
