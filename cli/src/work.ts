import { type Config, get, type HostReport, type RunningHost, startHost, systemUse } from '@svc/core'
import { Http } from '@svc/core/contracts'
import { type WorkerLink, workerLink } from '@svc/core/processes'
import { releaseDead } from './dead-workers.ts'
import { type LogOutput, openLog } from './log-output.ts'
import { type ServeOptions, TAKEN_PORT } from './serve-flags.ts'
import { findSettings, hostOptions, sourcesOf } from './settings.ts'

/** What the supervisor tells each worker. */
export interface WorkerTask {
  readonly serverId: string
  readonly home: string
  readonly options: ServeOptions
}

/** What a worker tells when it is ready: all that the supervisor knows of the configuration. */
export interface WorkerReport {
  readonly address: { readonly host: string; readonly port: number; readonly url: string } | undefined
  readonly workers: number
  readonly drainLimitMs: number
  /** The files and layers that the configuration came from. */
  readonly sources: readonly string[]
  readonly host: HostReport
}

/** Starts the host of one worker and reports; ends it when the supervisor says so. */
export async function work(task: string): Promise<void> {
  const link = workerLink()
  // The terminal and service managers signal the whole group: the supervisor decides, workers drain when it says so.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  const { serverId, home, options } = JSON.parse(task) as WorkerTask
  const log = openLog(process.stdout, options.json === true)
  process.once('exit', log.endNow)
  try {
    const config = await findSettings(withTakenPort(options), { home, cwd: process.cwd(), env: process.env })
    const host = await startHost({ ...hostOptions(config, home), serverId, log: { destination: log.destination } })
    process.on('uncaughtExceptionMonitor', error =>
      host.log.error({ err: error }, 'this worker ends: an error that nothing caught')
    )
    await releaseDead(host, serverId, home)
    await serveUntilDrained(link, host, config, log)
  } catch (error) {
    await link.failed(error)
    await log.end()
    process.exit(1)
  }
}

const withTakenPort = (options: ServeOptions): ServeOptions => {
  const port = process.env[TAKEN_PORT]
  return port === undefined ? options : { ...options, port: Number(port) }
}

async function serveUntilDrained(link: WorkerLink, host: RunningHost, config: Config, log: LogOutput): Promise<void> {
  link.onDrain(async () => {
    await host.close().catch((error: unknown) => host.log.error({ err: error }, 'the host did not close cleanly'))
    await log.end()
  })
  await link.ready(await reportOf(host, config))
}

async function reportOf(host: RunningHost, config: Config): Promise<WorkerReport> {
  const seconds = Number(get(config.value, ['server', 'shutdown_timeout']) ?? 30)
  return {
    address: await addressOf(host),
    workers: Number(get(config.value, ['server', 'workers']) ?? 1),
    drainLimitMs: seconds * 1000 + CLOSE_MS,
    sources: sourcesOf(config),
    host: host.report(),
  }
}

/** What a host may need to close once its requests are answered. */
const CLOSE_MS = 15_000

/** A host without the http plugin listens nowhere. */
function addressOf(host: RunningHost) {
  const serves = host.report().plugins.some(plugin => plugin.provides === Http.name && plugin.state === 'running')
  return serves ? host.service(Http).address(systemUse(AbortSignal.timeout(CLOSE_MS))) : undefined
}
