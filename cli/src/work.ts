import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Config,
  definePlugin,
  Events,
  get,
  type HostReport,
  type Layer,
  mergeConfig,
  type PluginEntry,
  type RunningHost,
  startHost,
  systemContext,
  StartFailed,
  type SvcError,
  redactError,
} from '@svc/core'
import { Configuration, Http, Reloaded, ServerControl } from '@svc/core/contracts'
import {
  collectAfterStart,
  createWorkerLife,
  deadHolders,
  findNonPlain,
  findServers,
  fromWire,
  reachServer,
  releaseHolders,
  type WorkerLink,
  workerLink,
  workersPlugin,
} from '@svc/runtime'
import { protectedPathsOf, watchedPaths } from '@svc/runtime/plugin-paths'
import type { Begun, Imports } from '@svc/runtime/watching'
import type { CatchUp, CaughtUp } from '@svc/plugin-manager/installed'
import { type LogOutput, openLog } from './log-output.ts'
import { redactOutput } from './redact-output.ts'
import type { ServeOptions } from './serve-flags.ts'
import { hostOptions, programOf, workersIn } from './host-options.ts'
import { SERVED_FILE, setHome } from './command-place.ts'
import { DEFAULTS, isPostgresUrl } from './curated.ts'
import { RESERVED, SERVED } from './reserved.ts'
import { findSettings, sourcesOf } from './settings.ts'
import { notStartedYet, portOurs } from './errors.ts'
import { problemsOf } from './command/errors.ts'

/** The task that the supervisor gives to each worker. */
export interface WorkerTask {
  readonly serverId: string
  readonly nodeId: string
  /** Start of the server, in Unix milliseconds. */
  readonly startedAt: number
  readonly home: string
  readonly options: ServeOptions
}

/** The report of a ready worker: everything that the supervisor knows of the configuration. */
export interface WorkerReport {
  readonly address: { readonly host: string; readonly port: number; readonly url: string } | undefined
  readonly workers: number
  /** Milliseconds that the server goes on serving after SIGTERM. */
  readonly leaveMs: number
  readonly drainLimitMs: number
  /** Milliseconds that requests have to finish after a reload. */
  readonly swapLimitMs: number
  readonly hangLimitMs: number
  /** The files and layers of the configuration. */
  readonly sources: readonly string[]
  /** With `--watch`: the files and folders that this host was made of. */
  readonly watch: readonly string[]
  /** When this worker began to read them, in Unix milliseconds. It may have read later changes or not. */
  readonly readAt: number
  /** Files that this worker created for the user to edit. */
  readonly begun: Begun
  /** The configuration for later workers; absent if it contains more than data. */
  readonly layers: readonly Layer[] | undefined
  readonly host: HostReport
}

/** Starts the host of one worker and reports to the supervisor, which also ends it. */
export async function work(text: string): Promise<void> {
  const link = workerLink()
  // The terminal and service managers signal the whole process group, but only the supervisor decides when workers drain.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  const task = JSON.parse(text) as WorkerTask
  // for code of other bundles, which have their own copy of each module
  if (task.options.config !== undefined) process.env[SERVED_FILE] = String(task.options.config)
  const log = openLog(process.stdout, task.options.json === true)
  process.once('exit', log.endNow)
  redactOutput()
  const life = createWorkerLife(link, () => log.end())
  try {
    const imports = task.options.watch === true ? (await import('@svc/runtime/watching')).noteImports() : undefined
    const layers = (await link.inherited) as WorkerReport['layers']
    const { config, caughtUp } = layers
      ? { config: await formerSettings(layers) }
      : await currentSettings(task, link, log, life.starting)
    const host = await startWorker(config, task, link, log, life.starting)
    caughtUp?.report(host.log)
    life.started(host)
    process.on('uncaughtExceptionMonitor', error => {
      // Node prints the error afterwards
      redactError(error)
      host.log.error({ err: error }, 'this worker exits because of an uncaught error')
    })
    void releaseHolders(host, await deadHolders(task.home), life.draining)
    await logUnset(host)
    await logAbandoned(host)
    await serve(link, host, config, task, imports)
  } catch (error) {
    if (life.draining.aborted) await life.ended()
    else await link.failed(await withPortOwner(error, task.home))
    await log.end()
    process.exit(1)
  }
}

/** Logs missing variables of third-party plugins. Plugins of svc work without theirs. */
async function logUnset(host: RunningHost): Promise<void> {
  const strangers = host
    .report()
    .plugins.filter(plugin => plugin.permissions.env !== undefined && !plugin.name.startsWith('@svc/plugin-'))
  if (strangers.length === 0) return
  const { UNSET_HINT, unsetIn, unsetText } = await import('./command/unset-variables.ts')
  for (const { name, permissions } of strangers) {
    const unset = unsetIn(permissions)
    if (unset.length > 0) host.log.warn({ plugin: name, unset }, `${unsetText(unset)}: ${UNSET_HINT}`)
  }
}

/** Logs that a change of plugins was interrupted and is not in effect. */
async function logAbandoned(host: RunningHost): Promise<void> {
  const home = setHome()
  if (!existsSync(join(home, 'svc-plugins.lock'))) return
  const { isAbandoned } = await import('@svc/plugin-manager/installed')
  if (await isAbandoned(home))
    host.log.warn(
      {},
      'a change of the installed plugins was interrupted before its trial start succeeded, so it is not in effect'
    )
}

/** The configuration of a dead worker, with the files of its plugins verified again. */
async function formerSettings(layers: readonly Layer[]): Promise<Config> {
  const { changedSince } = await import('@svc/plugin-manager/installed')
  return mergeConfig(layers, await changedSince(setHome(), layers))
}

const settingsFor = ({ home, options }: WorkerTask): Promise<Config> =>
  findSettings(options, { home, cwd: process.cwd(), env: process.env })

/** That package uses this one, so the compiler builds it later and must not follow the import. */
const CLUSTER: string = '@svc/plugin-manager/cluster'

/** The configuration now. The first worker of a server in a cluster first takes over the plugins that it has missed. */
async function currentSettings(
  task: WorkerTask,
  { start }: Pick<WorkerLink, 'start'>,
  { destination }: LogOutput,
  signal: AbortSignal
): Promise<{ readonly config: Config; readonly caughtUp?: CaughtUp | undefined }> {
  const config = await settingsFor(task)
  const isInCluster = isPostgresUrl(get(config.value, ['store', 'url'])) && task.options.linked === undefined
  if (start.kind !== 'server' || !isInCluster) return { config }
  const { catchUp } = (await import(CLUSTER)) as { catchUp: CatchUp }
  const caughtUp = await catchUp(config, signal, { destination })
  return { config: caughtUp?.hasChanged ? await settingsFor(task) : config, caughtUp }
}

/** `ending` ends the start. */
async function startWorker(
  config: Config,
  task: WorkerTask,
  link: WorkerLink,
  log: LogOutput,
  ending: AbortSignal
): Promise<RunningHost> {
  const { home, serverId, nodeId, startedAt } = task
  const workers = { name: 'workers', use: workersPlugin(link, workersIn(config), config.value, { pluginSet: pluginSetOf }) }
  const [clusterId, roles] = ['name', 'roles'].map(key => get(config.value, ['cluster', key]))
  const options = hostOptions(config, home, link.excluded)
  const control = serverPlugin(home)
  const host = await startHost({
    ...options,
    plugins: [...options.config.plugins, protectedPathsOf(programOf(config, home)), workers, control.entry],
    serverId,
    nodeId,
    ...(typeof clusterId === 'string' ? { clusterId } : {}),
    worker: link.name,
    ...(Array.isArray(roles) ? { roles: roles.map(String) } : {}),
    startedAt,
    // After a pause no other worker serves, so this one uses what they have kept.
    running: link.start.kind === 'worker' || link.start.kind === 'resume',
    log: { destination: log.destination },
    signal: ending,
  })
  control.started(host)
  return host
}

/** The revision of the cluster's plugins that this home has now. */
const pluginSetOf = async () => (await import('@svc/plugin-manager/installed')).readNodeRevision(setHome())

/** The reason of a reload, as its log shows it. */
const RELOAD = 'svc reload over HTTP'

/** The services `ServerControl` and `Configuration` of a worker. `started` gives them the host that they describe. */
export function serverPlugin(home: string): { readonly entry: PluginEntry; started(host: RunningHost): void } {
  const late: { host?: RunningHost } = {}
  const ours = new Set(DEFAULTS.plugins as readonly string[])
  const known = { reserved: RESERVED, served: SERVED }
  const plan = () => {
    if (!late.host) throw notStartedYet()
    return late.host.plan()
  }
  // most workers never need it
  const configuration = async () =>
    (await import('@svc/plugin-manager/configuration')).createConfiguration({ home, plan, ours, known })
  const services: ServerControl & Configuration = {
    async reload(ctx) {
      const [{ publicProblems }, server] = await Promise.all([
        import('@svc/plugin-manager/configuration'),
        reachServer(home, { fits: ({ pid }) => pid === process.ppid }),
      ])
      using _server = server
      // the reload goes on when the client leaves
      const { problems, workers } = await server.control.reload(systemContext(ctx.signal, RELOAD))
      return {
        problems: publicProblems(problems.map(fromWire), home),
        workers: workers.map(({ name, state, generation }) => ({ name, state, generation })),
      }
    },
    read: async ctx => (await configuration()).read(ctx),
    schema: async ctx => (await configuration()).schema(ctx),
    check: async (draft, ctx) => (await configuration()).check(draft, ctx),
    change: async (values, ifVersion, ctx) => (await configuration()).change(values, ifVersion, ctx),
  }
  const use = definePlugin({ provides: ServerControl, alsoProvides: [Configuration], setup: () => services })
  return { entry: { name: 'server-control', use }, started: host => void (late.host = host) }
}

async function serve(
  link: WorkerLink,
  host: RunningHost,
  config: Config,
  task: WorkerTask,
  imports: Imports | undefined
): Promise<void> {
  const report = await reportOf(host, config, task, imports)
  await link.ready(report)
  logStart(link, host, report)
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
    leaveMs: number('server', 'shutdown_delay', 0) * 1000,
    drainLimitMs: number('server', 'shutdown_timeout', 30) * 1000 + CLOSE_MS,
    swapLimitMs: Math.max(turnMs, number('chat', 'tool_timeout_ms', 60_000)),
    hangLimitMs: number('server', 'hang_timeout_ms', 10_000),
    sources: sourcesOf(config),
    watch: imports?.withImports(watchedPaths(programOf(config, home))) ?? [],
    readAt: performance.timeOrigin,
    begun: imports ? (await import('@svc/runtime/watching')).begunHere() : {},
    layers: plainLayers(config),
    host: host.report(),
  }
}

/** Logs the start of the server, or the reload that this worker leads. The other workers of a generation start silently. */
function logStart({ start }: WorkerLink, host: RunningHost, { address, sources }: WorkerReport): void {
  const { log } = host
  const facts = { url: address?.url, configuration: sources }
  if (start.kind === 'server' && address) log.info(facts, 'listening')
  if (start.kind !== 'reload' && start.kind !== 'resume') return
  log.info({ reason: start.reason, ...facts }, 'reload: the first new worker is ready')
  void host.service(Events).publish(Reloaded, { reason: String(start.reason) }, systemContext(new AbortController().signal))
}

/** A plugin that is written into `svc.config.ts` is code, which cannot be sent to another worker. */
function plainLayers(config: Config): Layer[] | undefined {
  const layers = config.layers.map(({ name, file, value }) => ({ name, ...(file === undefined ? {} : { file }), value }))
  return findNonPlain(layers, 'layers') === undefined ? layers : undefined
}

/** Time for a host to close after its requests are answered. */
const CLOSE_MS = 15_000

/** A host without the http plugin listens nowhere. */
function addressOf(host: RunningHost) {
  const serves = host.report().plugins.some(plugin => plugin.provides === Http.name && plugin.state === 'running')
  return serves ? host.service(Http).address(systemContext(AbortSignal.timeout(CLOSE_MS))) : undefined
}

/** Adds the owner to a taken port if it is a server of this home. */
async function withPortOwner(error: unknown, home: string): Promise<unknown> {
  const problems = problemsOf(error)
  if (!problems.some(isTaken)) return error
  const servers = await findServers(home).catch(() => [])
  for (const server of servers) server[Symbol.dispose]()
  return new StartFailed(
    problems.map(problem =>
      nameOwner(
        problem,
        servers.map(server => server.info)
      )
    )
  )
}

const isTaken = ({ code }: SvcError) => code === 'PORT_TAKEN'

function nameOwner(problem: SvcError, servers: readonly { readonly pid: number; readonly port: number }[]): SvcError {
  const { host, port } = problem.details
  const owner = isTaken(problem) ? servers.find(server => server.port === port) : undefined
  return owner === undefined ? problem : portOurs(String(host), owner.port, owner.pid, problem.plugin)
}
