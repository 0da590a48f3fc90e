import {
  type ControlSocket,
  createSupervisor,
  listenControl,
  type Supervisor,
  type SupervisorEvent,
  ensureHome,
} from '@svc/core/processes'
import { fileURLToPath } from 'node:url'
import { type Announcer, createAnnouncer } from './announcer.ts'
import { DEAD_WORKERS, type ServeOptions, TAKEN_PORT } from './serve-flags.ts'
import type { WorkerReport, WorkerTask } from './work.ts'

/** The other half of this program; the same way up from `src` and from `dist`. */
const WORKER = fileURLToPath(new URL('../bin/worker.js', import.meta.url))
const FORCED = 130

/**
 * Runs `svc serve`: a supervisor that loads no plugin and reads no configuration; its workers do. Resolves with the exit code: 0 after a drain, 1 when
 * the first worker cannot start, 130 when a second signal ended it at once.
 */
export async function serve(options: ServeOptions): Promise<number> {
  // Whoever reads what this process says may go before it does.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const announcer = createAnnouncer(options.json === true)
  try {
    return await supervise(options, ensureHome(), announcer)
  } catch (error) {
    await announcer.failed(error)
    return 1
  }
}

async function supervise(options: ServeOptions, home: string, announcer: Announcer): Promise<number> {
  const task: WorkerTask = { serverId: makeServerId(), home, options }
  const dead = new Set<number>()
  const supervisor = createSupervisor<WorkerReport>({
    exec: WORKER,
    args: [JSON.stringify(task)],
    execArgv: process.execArgv,
    settings: report => settingsOf(report, dead),
    onEvent(event) {
      if (event.event === 'exited') dead.add(event.worker.pid)
      announceLater(supervisor, event, announcer.event)
    },
  })
  const ending = endOnSignals(supervisor, announcer.draining)
  try {
    const report = await supervisor.start()
    await using _control = await openControl(home, supervisor, report, ending.stop)
    announcer.ready(report, home)
    return await ending.done
  } catch (error) {
    if (ending.asked()) return await ending.done
    await supervisor.stop()
    throw error
  } finally {
    ending.forget()
  }
}

/** A name, no secret: node:crypto would cost a tenth of the time until the worker is forked. */
const makeServerId = () =>
  `${process.pid}-${[Date.now(), Math.random() * 2 ** 52].map(part => Math.floor(part).toString(36)).join('-')}`

/** What happens to workers is news only once the server runs. */
function announceLater(
  supervisor: Supervisor<WorkerReport>,
  event: SupervisorEvent<WorkerReport>,
  tell: (event: SupervisorEvent<WorkerReport>) => void
) {
  if (supervisor.state.state === 'running') tell(event)
}

/** A process that dies again and again must not fill the environment; what older ones held has run out. */
const REMEMBERED = 100

const settingsOf = ({ workers, drainLimitMs, address }: WorkerReport, dead: ReadonlySet<number>) => ({
  count: workers,
  drainLimitMs,
  env: {
    ...(address ? { [TAKEN_PORT]: String(address.port) } : {}),
    // read anew for each worker that is brought up
    get [DEAD_WORKERS]() {
      return [...dead].slice(-REMEMBERED).join()
    },
  },
})

function openControl(
  home: string,
  supervisor: Supervisor<WorkerReport>,
  report: WorkerReport,
  stop: () => void
): Promise<ControlSocket> {
  const { address, host } = report
  const info = {
    pid: process.pid,
    url: address?.url ?? '',
    host: address?.host ?? '',
    port: address?.port ?? 0,
    version: host.version,
    startedAt: host.startedAt,
  }
  return listenControl(home, process.pid, {
    info: async () => ({ ...info, workers: supervisor.workers }),
    report: async () => host,
    stop: async () => stop(),
  })
}

/** npm sends its children the signal that the terminal has sent them already. */
const ECHO_MS = process.env.npm_lifecycle_event === undefined ? 0 : 500

/** The first SIGINT, SIGTERM or SIGHUP (its terminal has gone) drains, the second ends at once. */
function endOnSignals(supervisor: Supervisor<WorkerReport>, tell: () => void) {
  const done = Promise.withResolvers<number>()
  let since: number | undefined
  const stop = () => {
    if (since !== undefined && performance.now() - since < ECHO_MS) return
    const forced = since !== undefined
    since ??= performance.now()
    if (!forced) tell()
    void supervisor.stop().then(() => done.resolve(0))
    if (forced) done.resolve(FORCED)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, stop)
  return {
    stop,
    done: done.promise,
    asked: () => since !== undefined,
    forget: () => signals.forEach(signal => process.off(signal, stop)),
  }
}
