import { isAbsolute, join, relative, sep } from 'node:path'
import { type ReloadResult, shownPath, type SupervisorEvent, userHome, type WorkerInfo } from '@svc/runtime'
import { milliseconds, table, visible, visibleLines } from './command/text.ts'
import type { WorkerReport } from './work.ts'

// An `import` of node:util loads all its lazy exports, which would delay every start.
const { styleText } = process.getBuiltinModule('node:util')

/** Reports what happens to the server: sentences on the standard error stream, or JSON lines on the standard output. */
export interface Announcer {
  readonly ready: (report: WorkerReport, home: string) => void
  readonly event: (event: SupervisorEvent<WorkerReport>) => void
  /** Call the returned function when the server has ended. */
  readonly draining: () => () => void
  readonly reloading: (why: string) => void
  readonly reloaded: (result: ReloadResult) => void
  readonly failed: (error: unknown) => Promise<void>
}

export function createAnnouncer(json: boolean): Announcer {
  return json ? jsonAnnouncer() : textAnnouncer(process.stderr)
}

function textAnnouncer(stream: NodeJS.WriteStream): Announcer {
  const say = (text: string) => void stream.write(`${text}\n`)
  return {
    ready: (report, home) => say(readyText(report, home, stream)),
    event(event) {
      const text = eventText(event)
      if (text) say(`svc: ${text}`)
    },
    draining() {
      say('svc: draining; a second signal ends it at once')
      const began = performance.now()
      return () => say(`svc: ended after ${milliseconds(performance.now() - began)}`)
    },
    reloading: why => say(`svc: reloading (${why})`),
    reloaded: result => void reloadedText(result).then(text => say(`svc: ${text}`)),
    failed: async error => say(await errorText(error)),
  }
}

function jsonAnnouncer(): Announcer {
  const say = (event: string, facts: object) =>
    void process.stdout.write(`${JSON.stringify({ event, time: new Date().toISOString(), ...facts })}\n`)
  return {
    ready: (report, home) => say('ready', readyFacts(report, home)),
    event: event => void eventFacts(event).then(facts => say(`worker_${event.event}`, facts)),
    draining() {
      say('draining', {})
      const began = performance.now()
      return () => say('ended', { after_ms: Math.round(performance.now() - began) })
    },
    reloading: why => say('reloading', { why }),
    reloaded: result => say(result.problems.length === 0 ? 'reloaded' : 'reload_failed', reloadedFacts(result)),
    async failed(error) {
      const { errorFacts } = await import('./command/errors.ts')
      say('failed', { problems: errorFacts(error) })
    },
  }
}

async function eventFacts(event: SupervisorEvent<WorkerReport>): Promise<object> {
  switch (event.event) {
    case 'ready':
      return { pid: event.worker.pid }
    case 'failed': {
      const { errorFacts } = await import('./command/errors.ts')
      return { pid: event.worker.pid, problems: event.problems.flatMap(errorFacts) }
    }
    case 'exited':
      return { pid: event.worker.pid, how: event.how }
    case 'hung':
      return { pid: event.worker.pid, limit_ms: event.limitMs }
    case 'blamed':
      return { level: 'error', pid: event.worker.pid, how: event.how, ...event.offence }
    case 'replacing':
      return { delay_ms: event.delayMs }
    case 'unserved':
      return { level: 'warn', connections: event.count }
    case 'looping':
      return { level: 'error', deaths: event.deaths, how: event.how, next_ms: event.delayMs }
  }
}

/** Imports the kernel only to format an error: a successful start does without it. */
async function errorText(error: unknown): Promise<string> {
  const { errorPage } = await import('./command/errors.ts')
  return errorPage(error)
}

/** Hosts that mean all addresses of the machine. */
const ALL = new Set(['0.0.0.0', '::', '[::]'])

function readyText(report: WorkerReport, home: string, stream: NodeJS.WriteStream): string {
  const { address, host, sources } = report
  const bold = (text: string) => styleText('bold', text, { stream })
  const where = address
    ? `listens on ${bold(address.url)}${ALL.has(address.host) ? ' (all addresses)' : ''}`
    : 'runs without the http plugin, so it listens nowhere'
  const rows = host.plugins.map(plugin => [
    visible(`  ${plugin.name}${plugin.instance === undefined ? '' : ` (${plugin.instance})`}`),
    plugin.state === 'failed' ? `failed: ${visibleLines(plugin.error?.message ?? '')}` : milliseconds(plugin.setupMs),
  ])
  const from =
    sources.length > 0
      ? sources.map(source => (isAbsolute(source) ? shownPath(source, process.cwd(), home) : source)).join(', ')
      : 'defaults'
  return `svc ${host.version} ${where}   (ready after ${milliseconds(performance.now())})\n${table(rows, ['left', 'right'])}\n  configuration: ${from}; home: ${shownHome(home)}; press Ctrl-C to stop`
}

const shownHome = (home: string) => (home.startsWith(userHome() + sep) ? join('~', relative(userHome(), home)) : home)

const readyFacts = ({ address, host, sources }: WorkerReport, home: string) => ({
  url: address?.url ?? null,
  pid: process.pid,
  version: host.version,
  ready_after_ms: Math.round(performance.now()),
  home,
  configuration: sources,
  plugins: host.plugins.map(({ name, instance, version, state, setupMs }) => ({
    name,
    ...(instance === undefined ? {} : { instance }),
    version,
    state,
    setup_ms: Number(setupMs.toFixed(1)),
  })),
})

function eventText(event: SupervisorEvent<WorkerReport>): string | undefined {
  switch (event.event) {
    case 'ready':
      return `worker ${event.worker.pid} is ready`
    case 'failed':
      return `worker ${event.worker.pid} cannot start: ${visibleLines(event.problems.map(problem => problem.message).join('; '))}`
    case 'exited':
      return event.worker.state === 'draining' ? undefined : `worker ${event.worker.pid} ended (${event.how})`
    case 'hung':
      return `worker ${event.worker.pid} hangs: no sign of life for ${milliseconds(event.limitMs)}; the supervisor kills it`
    case 'blamed':
      return blamedText(event)
    case 'looping':
      return `error: ${event.deaths} workers in a row crashed soon after their start, the last one with ${event.how}; the other workers keep serving, and the supervisor tries again`
    case 'unserved':
      return `connections closed because no worker could take them: ${event.count}`
    case 'replacing':
      return event.delayMs === 0 ? 'starting its successor' : `starting its successor in ${milliseconds(event.delayMs)}`
  }
}

function blamedText({ worker, how, offence }: Extract<SupervisorEvent<WorkerReport>, { event: 'blamed' }>): string {
  const { plugin, instance, offences, quarantined } = offence
  const name = instance === undefined ? plugin : `${plugin} (${instance})`
  const next = quarantined ? `${name} is quarantined until \`svc reload\`` : `it happened ${offences} times within ten minutes`
  return `error: worker ${worker.pid} ended (${how}) while it handled a message of ${name}; ${next}`
}

const pidsIn = (workers: readonly WorkerInfo[], state: WorkerInfo['state']) =>
  workers.filter(worker => worker.state === state).map(worker => worker.pid)

/** The result of a reload for a person. */
export async function reloadedText({ problems, workers, url, drainLimitMs }: ReloadResult): Promise<string> {
  if (problems.length > 0) {
    const { errorPage } = await import('./command/errors.ts')
    const { fromWire } = await import('@svc/runtime')
    return `not reloaded, the old workers keep serving:\n\n${problems.map(problem => errorPage(fromWire(problem))).join('\n\n')}`
  }
  const [ready, draining] = [pidsIn(workers, 'ready'), pidsIn(workers, 'draining')]
  const old =
    draining.length === 0
      ? ''
      : `; ${draining.length} old (${draining.join(', ')}) finish their requests; svc aborts requests that take longer than ${milliseconds(drainLimitMs)} (chat.queue_timeout_ms and timeout_ms together, or tool_timeout_ms)`
  return `reloaded: ${ready.length === 1 ? 'a new worker serves' : `${ready.length} new workers serve`} ${url} (${ready.join(', ')})${old}`
}

/** The result of a reload as JSON. */
export const reloadedFacts = ({ problems, workers, url, drainLimitMs }: ReloadResult): object =>
  problems.length > 0
    ? { problems }
    : { url, ready: pidsIn(workers, 'ready'), draining: pidsIn(workers, 'draining'), drain_limit_ms: drainLimitMs }

/** Prints to the author of a plugin which files svc reloaded, and how long the reload took. */
export function tellReloaded(folder: string, files: readonly string[], ms: number): void {
  const names = files.map(file => relative(folder, file)).join(', ')
  process.stderr.write(`${names}: reloaded in ${milliseconds(ms)}\n`)
}
