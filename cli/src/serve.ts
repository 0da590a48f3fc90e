import { join } from 'node:path'
import { isatty } from 'node:tty'
import { fileURLToPath } from 'node:url'
import {
  KEEP_COMPILED_CODE,
  keepHeapSmall,
  youngGeneration,
  type ControlSocket,
  createSupervisor,
  DeadWorkers,
  ensureHome,
  listenControl,
  makeServerId,
  nodeIdOf,
  type Supervisor,
  type SupervisorEvent,
} from '@svc/runtime'
import type { Announcer } from './announcer.ts'
import { createPausing, type Reloading } from './reloading.ts'
import { outliveReader, type Signals, takeSignals } from './signals.ts'
import type { ServeOptions } from './serve-flags.ts'
import type { WorkerReport, WorkerTask } from './work.ts'

/** The entry of a worker; the path is the same from `src` and from `dist`. */
const WORKER = fileURLToPath(new URL('../bin/worker.js', import.meta.url))

/**
 * Runs `svc serve`: a supervisor that loads no plugin and reads no configuration; its workers do. Resolves with the exit code:
 * 0 after a drain, 1 when the first worker cannot start or workers crash repeatedly, 130 when a second signal ended it at once.
 */
export async function serve(options: ServeOptions): Promise<number> {
  outliveReader()
  keepHeapSmall()
  const announcing = () => announcerFor(options)
  const run = () => supervise(options, ensureHome(), announcing)
  try {
    return await run().catch(async (error: unknown) => {
      const code = await askToAccept(error, options)
      if (code === 0) return run()
      if (code === STOPPED) return code
      throw error
    })
  } catch (error) {
    await (await announcing()).failed(error)
    return 1
  }
}

/**
 * At a terminal, asks for the consent that a start lacks, as `svc plugins accept` does. Returns its exit code, or nothing when
 * there is no terminal, or consent alone would not help.
 */
async function askToAccept(error: unknown, { config, json }: ServeOptions): Promise<number | undefined> {
  if (json === true || !process.stdin.isTTY || !process.stderr.isTTY) return undefined
  const { problemsOf } = await import('./command/errors.ts')
  const problems = problemsOf(error)
  const names = new Set(problems.flatMap(({ code, plugin }) => (code === NOT_ACCEPTED && plugin !== undefined ? [plugin] : [])))
  if (names.size === 0 || problems.some(({ code }) => code !== NOT_ACCEPTED)) return undefined
  const { runOclif } = await import('./oclif.ts')
  return runOclif(['plugins', 'accept', ...names, ...(config === undefined ? [] : ['--config', String(config)])])
}

const NOT_ACCEPTED = 'PERMISSION_NOT_ACCEPTED'
/** The exit code of Ctrl-C. An import of the constant would delay every start. */
const STOPPED = 130

async function announcerFor({ json }: ServeOptions): Promise<Announcer> {
  const { createAnnouncer } = await import('./announcer.ts')
  return createAnnouncer(json === true)
}

async function supervise(options: ServeOptions, home: string, announcing: () => Promise<Announcer>): Promise<number> {
  let announcer: Announcer | undefined
  let reloading: Reloading | undefined
  const nodeId = nodeIdOf(home)
  const id = makeServerId(nodeId)
  const supervisor = superviseWorkers(options, { home, nodeId, id }, event => announcer?.event(event))
  const signals = takeSignals({
    hadTerminal: [0, 1, 2].some(isatty),
    draining: () => announcer?.draining(),
    stop: leaveMs => supervisor.stop(leaveMs),
    reload: () => void reloading?.reload('SIGHUP'),
  })
  try {
    const started = supervisor.start()
    // modules that the fork does not need load while the first worker starts
    announcer = await announcing()
    const { createReloading } = await import('./reloading.ts')
    const report = await started
    reloading = createReloading(supervisor, announcer)
    return await serveUntilEnded(options, home, { id, supervisor, reloading, announcer, signals, report })
  } catch (error) {
    if (signals.asked()) return await signals.ended
    await supervisor.stop()
    throw error
  } finally {
    signals.forget()
  }
}

/** The svc home of a server, and an id that is never reused, unlike a process id. */
interface ServerPlace {
  readonly home: string
  readonly nodeId: string
  readonly id: string
}

/** A server whose first worker is ready. */
interface Serving {
  readonly id: string
  readonly supervisor: Supervisor<WorkerReport>
  readonly reloading: Reloading
  readonly announcer: Announcer
  readonly signals: Signals
  readonly report: WorkerReport
}

async function serveUntilEnded(options: ServeOptions, home: string, serving: Serving): Promise<number> {
  const { id, supervisor, reloading, announcer, signals, report } = serving
  await using _control = await openControl({ home, id }, supervisor, () => reloading.report() ?? report, {
    stop: signals.stop,
    reloading,
    options,
  })
  using _watching = options.watch === true ? await watchSources(options, reloading, report) : undefined
  announcer.ready(report, home)
  return await Promise.race([signals.ended, supervisor.gaveUp.then(problem => Promise.reject(problem))])
}

function superviseWorkers(
  options: ServeOptions,
  { home, nodeId, id }: ServerPlace,
  announce: (event: SupervisorEvent<WorkerReport>) => void
): Supervisor<WorkerReport> {
  const task: WorkerTask = { serverId: id, nodeId, startedAt: Date.now(), home, options }
  const dead = new DeadWorkers()
  const supervisor: Supervisor<WorkerReport> = createSupervisor<WorkerReport>({
    name: id,
    exec: WORKER,
    args: [JSON.stringify(task)],
    execArgv: [
      ...process.execArgv,
      ...KEEP_COMPILED_CODE,
      ...youngGeneration(),
      ...(options.linked === undefined ? [] : ['--conditions=development']),
    ],
    // an author who saves a file sees whether the worker stays up
    ...(options.linked === undefined ? {} : { trialMs: 0 }),
    traceFolder: join(home, 'run'),
    settings: report => settingsOf(report, dead),
    onEvent(event) {
      if (event.event === 'exited') dead.add(event.worker.name)
      announceLater(supervisor, event, announce)
    },
  })
  return supervisor
}

/** Reports events of workers only once the server runs. */
function announceLater(
  supervisor: Supervisor<WorkerReport>,
  event: SupervisorEvent<WorkerReport>,
  announce: (event: SupervisorEvent<WorkerReport>) => void
) {
  if (supervisor.state.state === 'running') announce(event)
}

const settingsOf = ({ workers, leaveMs, drainLimitMs, swapLimitMs, hangLimitMs, layers }: WorkerReport, dead: DeadWorkers) => ({
  inherited: layers,
  count: workers,
  leaveMs,
  drainLimitMs,
  swapLimitMs,
  hangLimitMs,
  // read again for each new worker
  get env() {
    return dead.env
  },
})

function openControl(
  { home, id }: Pick<ServerPlace, 'home' | 'id'>,
  supervisor: Supervisor<WorkerReport>,
  now: () => WorkerReport,
  { stop, reloading, options }: { stop: (leaveMs?: number) => void; reloading: Reloading; options: ServeOptions }
): Promise<ControlSocket> {
  return listenControl(
    home,
    { pid: process.pid, id },
    {
      info: async () => ({ ...infoOf(now(), options), workers: supervisor.workers, ...failedIn(reloading) }),
      report: async () => now().host,
      stop: async leaveMs => stop(leaveMs),
      reload: ({ requestId }) => reloading.reload(reasonIn(requestId)),
      ask: (topic, message, ctx) => supervisor.ask(topic, message, ctx),
      request: (request, ctx) => supervisor.request(request, ctx),
      ...createPausing(reloading),
    }
  )
}

/** The command that reloads, which svc sends as its request id. */
const reasonIn = (requestId: string) => (/^svc [\w :-]{1,100}$/.test(requestId) ? requestId : 'svc reload')

const failedIn = (reloading: Reloading) => {
  const failedReload = reloading.failed()
  return failedReload === undefined ? {} : { failedReload }
}

const infoOf = ({ address, host }: WorkerReport, { surface, linked }: ServeOptions) => ({
  pid: process.pid,
  url: address?.url ?? '',
  host: address?.host ?? '',
  port: address?.port ?? 0,
  version: host.version,
  startedAt: host.startedAt,
  ...(surface === undefined ? {} : { surface }),
  ...(linked === undefined ? {} : { linked }),
})

/** An editor that saves one file is faster than a compiler. */
const SOON_MS = 30

/** Reloads when the sources of the workers change. */
async function watchSources({ linked }: ServeOptions, reloading: Reloading, report: WorkerReport): Promise<Disposable> {
  const { createWatching } = await import('@svc/runtime/watching')
  const reload = async (files: readonly string[]) => {
    const began = performance.now()
    const { problems } = await reloading.reload(files.join(', '))
    if (linked !== undefined && problems.length === 0)
      (await import('./announcer.ts')).tellReloaded(linked, files, performance.now() - began)
  }
  const watching = createWatching(reload, linked === undefined ? undefined : SOON_MS)
  const look = ({ watch, readAt, begun }: WorkerReport) => watching.look(watch, readAt, begun)
  look(report)
  reloading.onReloaded(look)
  return watching
}
