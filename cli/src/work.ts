import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Config,
  get,
  type HostReport,
  type Layer,
  mergeConfig,
  type RunningHost,
  startHost,
  systemContext,
  StartFailed,
  type SvcError,
} from '@svc/core'
import { Http, Store } from '@svc/core/contracts'
import { findNonPlain, type WorkerLink, workerLink, deadServers, findServers } from '@svc/runtime'
import { type Begun, begunHere, type Imports } from './watching.ts'
import { type LogOutput, openLog } from './log-output.ts'
import { type ServeOptions, DEAD_WORKERS } from './serve-flags.ts'
import { hostOptions } from './host-options.ts'
import { protectedPathsOf } from './plugin-paths.ts'
import { findSettings, setHome, sourcesOf } from './settings.ts'
import { collectAfterStart } from './small-heap.ts'
import { workersPlugin } from './workers-plugin.ts'
import { portOurs } from './errors.ts'
import { problemsOf } from './command/errors.ts'

/** What the supervisor tells each worker. */
export interface WorkerTask {
  readonly serverId: string
  /** When the server began, in Unix milliseconds. */
  readonly startedAt: number
  readonly home: string
  readonly options: ServeOptions
}

/** What a worker tells when it is ready: all that the supervisor knows of the configuration. */
export interface WorkerReport {
  readonly address: { readonly host: string; readonly port: number; readonly url: string } | undefined
  readonly workers: number
  readonly drainLimitMs: number
  /** Milliseconds that requests have to end after a reload. */
  readonly swapLimitMs: number
  readonly hangLimitMs: number
  /** The files and layers that the configuration came from. */
  readonly sources: readonly string[]
  /** With `--watch`: files and folders that this host was made of. */
  readonly watch: readonly string[]
  /** When this worker began to read them, in milliseconds of the epoch: what was saved later may be in it or not. */
  readonly readAt: number
  /** Files that this worker has begun itself, for a person to go on with. */
  readonly begun: Begun
  /** The configuration, for the workers after this one; absent where it holds more than data. */
  readonly layers: readonly Layer[] | undefined
  readonly host: HostReport
}

/** Starts the host of one worker and reports; ends it when the supervisor says so. */
export async function work(text: string): Promise<void> {
  const link = workerLink()
  // The terminal and service managers signal the whole group: the supervisor decides, workers drain when it says so.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  const task = JSON.parse(text) as WorkerTask
  const log = openLog(process.stdout, task.options.json === true)
  process.once('exit', log.endNow)
  try {
    const imports = task.options.watch === true ? (await import('./watching.ts')).noteImports() : undefined
    const layers = (await link.inherited) as WorkerReport['layers']
    const config = layers ? await formerSettings(layers) : await settingsFor(task)
    const host = await startWorker(config, task, link, log)
    process.on('uncaughtExceptionMonitor', error =>
      host.log.error({ err: error }, 'this worker ends: an error that nothing caught')
    )
    const draining = new AbortController()
    void releaseHolders(host, await deadHolders(task.serverId, task.home), draining.signal)
    await logUnset(host)
    await logAbandoned(host)
    await serveUntilDrained(link, { host, draining }, config, task, log, imports)
  } catch (error) {
    await link.failed(await withPortOwner(error, task.home))
    await log.end()
    process.exit(1)
  }
}

/** What an author needs may be missing; of its own plugins svc knows that they do without. */
async function logUnset(host: RunningHost): Promise<void> {
  const strangers = host.report().plugins.filter(one => one.permissions.env !== undefined && !one.name.startsWith('@svc/plugin-'))
  if (strangers.length === 0) return
  const { UNSET_HINT, unsetIn, unsetText } = await import('./installed.ts')
  for (const { name, permissions } of strangers) {
    const unset = unsetIn(permissions)
    if (unset.length > 0) host.log.info({ plugin: name, unset }, `${unsetText(unset)}: ${UNSET_HINT}`)
  }
}

/** A change of plugins that somebody has ended: who waits for it is told why it is not here. */
async function logAbandoned(host: RunningHost): Promise<void> {
  const home = setHome()
  if (!existsSync(join(home, 'svc-plugins.lock'))) return
  const { isAbandoned } = await import('@svc/plugin-manager/installed')
  if (await isAbandoned(home))
    host.log.warn({}, 'a change of the installed plugins was ended before it was known to serve: it does not count')
}

/** The configuration of a worker that has died. The files of its plugins are verified anew. */
async function formerSettings(layers: readonly Layer[]): Promise<Config> {
  const { changedSince } = await import('./installed.ts')
  return mergeConfig(layers, await changedSince(setHome(), layers))
}

const settingsFor = ({ home, options }: WorkerTask): Promise<Config> =>
  findSettings(options, { home, cwd: process.cwd(), env: process.env })

function startWorker(config: Config, task: WorkerTask, link: WorkerLink, log: LogOutput): Promise<RunningHost> {
  const { home, serverId, startedAt } = task
  const workers = { name: 'workers', use: workersPlugin(link, serverId, workersIn(config)) }
  const options = hostOptions(config, home, link.excluded)
  return startHost({
    ...options,
    plugins: [...options.config.plugins, protectedPathsOf(config, home), workers],
    serverId,
    startedAt,
    log: { destination: log.destination },
  })
}

async function serveUntilDrained(
  link: WorkerLink,
  { host, draining }: { host: RunningHost; draining: AbortController },
  config: Config,
  task: WorkerTask,
  log: LogOutput,
  imports: Imports | undefined
): Promise<void> {
  link.onDrain(async wish => {
    draining.abort()
    await host.close(wish).catch((error: unknown) => host.log.error({ err: error }, 'the host did not close cleanly'))
    await log.end()
  })
  await link.ready(await reportOf(host, config, task, imports))
  imports?.[Symbol.dispose]()
  collectAfterStart()
}

async function reportOf(
  host: RunningHost,
  config: Config,
  { home }: WorkerTask,
  imports: Imports | undefined
): Promise<WorkerReport> {
  const number = (section: string, key: string, fallback: number) => Number(get(config.value, [section, key]) ?? fallback)
  const turnMs = number('chat', 'queue_timeout_ms', 30_000) + number('chat', 'timeout_ms', 120_000)
  return {
    address: await addressOf(host),
    workers: workersIn(config),
    drainLimitMs: number('server', 'shutdown_timeout', 30) * 1000 + CLOSE_MS,
    swapLimitMs: Math.max(turnMs, number('chat', 'tool_timeout_ms', 60_000)),
    hangLimitMs: number('server', 'hang_timeout_ms', 10_000),
    sources: sourcesOf(config),
    watch: imports ? await watched(config, home, imports) : [],
    readAt: performance.timeOrigin,
    begun: begunHere(),
    layers: plainLayers(config),
    host: host.report(),
  }
}

/** A plugin written into `svc.config.ts` is code: nobody can hand it on. */
function plainLayers(config: Config): Layer[] | undefined {
  const layers = config.layers.map(({ name, file, value }) => ({ name, ...(file === undefined ? {} : { file }), value }))
  return findNonPlain(layers, 'layers') === undefined ? layers : undefined
}

const workersIn = (config: Config) => Number(get(config.value, ['server', 'workers']) ?? 1)

async function watched(config: Config, home: string, imports: Imports): Promise<string[]> {
  const { placesOf } = await import('./plugin-paths.ts')
  return imports.withImports(placesOf(config, home))
}

/** What a host may need to close once its requests are answered. */
const CLOSE_MS = 15_000

/** A host without the http plugin listens nowhere. */
function addressOf(host: RunningHost) {
  const serves = host.report().plugins.some(plugin => plugin.provides === Http.name && plugin.state === 'running')
  return serves ? host.service(Http).address(systemContext(AbortSignal.timeout(CLOSE_MS))) : undefined
}

const RELEASE_MS = 10_000

/**
 * Who may hold leases and is dead: workers of this server, and servers of this home that were killed as a whole. A lease's holder is
 * `<id of the server>/<pid of the worker>/`. To be asked before this server is told to be ready: then it clears away what they have left.
 */
async function deadHolders(serverId: string, home: string): Promise<string[]> {
  return [...deadBefore().map(pid => `${serverId}/${pid}/`), ...(await deadServers(home)).map(id => `${id}/`)]
}

/** Gives back their leases; else whoever waits for one would wait until it runs out. Never throws: what fails is logged. An abort ends it. */
async function releaseHolders(host: RunningHost, holders: readonly string[], signal: AbortSignal): Promise<void> {
  const stores = host.report().plugins.some(plugin => plugin.provides === Store.name && plugin.state === 'running')
  if (!stores) return
  const ctx = systemContext(AbortSignal.any([signal, AbortSignal.timeout(RELEASE_MS)]), 'dead workers')
  const failed = (err: unknown) => host.log.warn({ err }, 'what dead workers held is free only when it runs out')
  await Promise.all(holders.map(async holder => host.service(Store).releaseHolder(holder, ctx))).catch(failed)
}

/** Without this process: the system may have given it the id of a dead one. */
const deadBefore = () => (process.env[DEAD_WORKERS] ?? '').split(',').filter(pid => pid !== '' && pid !== String(process.pid))

/** An error as it is, but for a taken port: who has it may be a server of this very home. */
async function withPortOwner(error: unknown, home: string): Promise<unknown> {
  const problems = problemsOf(error)
  if (!problems.some(isTaken)) return error
  const servers = await findServers(home).catch(() => [])
  for (const server of servers) server[Symbol.dispose]()
  return new StartFailed(
    problems.map(problem =>
      nameOwner(
        problem,
        servers.map(one => one.info)
      )
    )
  )
}

const isTaken = ({ code }: SvcError) => code === 'PORT_TAKEN'

function nameOwner(problem: SvcError, servers: readonly { readonly pid: number; readonly port: number }[]): SvcError {
  const { host, port } = problem.details
  const owner = isTaken(problem) ? servers.find(one => one.port === port) : undefined
  return owner === undefined ? problem : portOurs(String(host), owner.port, owner.pid, problem.plugin)
}
