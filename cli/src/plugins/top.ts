import { styleText } from 'node:util'
import { formatError } from '@svc/core'
import { openLiveScreen } from '../live-screen.ts'
import { grownSince, type Metrics } from '../metrics-text.ts'
import { type Asked, readStatus } from '../server-status.ts'
import { untilEnded } from '../status.ts'
import { type Look, lookAgain } from '../status-watch.ts'
import { clipped, counted, milliseconds, shortName, table } from '../text.ts'
import { figuresUntold } from './errors.ts'
import { type PluginUsage, usageOf } from './usage.ts'

type SortedBy = 'time' | 'calls' | 'errors' | 'memory' | 'cpu'

export interface TopOptions extends Asked {
  readonly sort: SortedBy
  readonly once: boolean
  /** Seconds between two looks. */
  readonly interval: number
  readonly json: boolean
}

/** `svc plugins top`; resolves with the exit code. */
export async function top(options: TopOptions): Promise<number> {
  if (options.json || options.once || !process.stdout.isTTY) return await once(options)
  using live = openLiveScreen(process.stdout)
  const foot = `every ${options.interval} s, by ${options.sort}; Ctrl-C ends it`
  const show = (now: Look, before: Look | undefined) => live.draw(`${pictureOf(options, now, before)}\n\n${foot}`)
  return await untilEnded(signal => lookAgain(options, signal, show))
}

async function once(options: TopOptions): Promise<number> {
  const { metrics, untold } = await readStatus(options)
  if (metrics === undefined) throw figuresUntold(untold.find(one => one.path === '/metrics'))
  const all = sorted(usageOf(metrics), options.sort)
  process.stdout.write(`${options.json ? JSON.stringify({ plugins: all.map(wire) }, null, 2) : usageTable(all)}\n`)
  return 0
}

function pictureOf({ sort }: TopOptions, now: Look, before: Look | undefined): string {
  if (now.status === undefined) return formatError(now.error)
  const { metrics, untold } = now.status
  if (metrics === undefined) return formatError(figuresUntold(untold.find(one => one.path === '/metrics')))
  return usageTable(sorted(usageOf(metrics), sort), recentOf(now.at, metrics, before))
}

/** What was done since the look before, by plugin. */
interface Recent {
  readonly seconds: number
  readonly of: ReadonlyMap<string, PluginUsage>
}

function recentOf(at: number, metrics: Metrics, before: Look | undefined): Recent | undefined {
  if (before?.status?.metrics === undefined) return undefined
  const grown = usageOf(grownSince(before.status.metrics, metrics))
  return { seconds: (at - before.at) / 1000, of: new Map(grown.map(one => [one.name, one])) }
}

const KEYS: Readonly<Record<SortedBy, (one: PluginUsage) => number>> = {
  time: one => one.ms,
  calls: one => one.calls,
  errors: one => one.errors,
  memory: one => one.isolated?.memoryBytes ?? 0,
  cpu: one => one.isolated?.cpuMs ?? 0,
}

const sorted = (all: readonly PluginUsage[], by: SortedBy) =>
  all.toSorted((a, b) => KEYS[by](b) - KEYS[by](a) || a.name.localeCompare(b.name))

const wire = ({ name, calls, errors, ms, isolated }: PluginUsage) => ({
  plugin: name,
  calls,
  errors,
  ms: Number(ms.toFixed(3)),
  ...(isolated === undefined
    ? {}
    : {
        isolation: 'process',
        memory_bytes: isolated.memoryBytes,
        cpu_ms: Math.round(isolated.cpuMs),
        restarts: isolated.restarts,
        refusals: isolated.refusals,
        quarantined: isolated.quarantined,
      }),
})

const NAME = 34
const MIB = 1_048_576

function usageTable(all: readonly PluginUsage[], recent?: Recent): string {
  const heads = ['PLUGIN', ...(recent ? ['/S', 'BUSY'] : []), 'CALLS', 'ERRORS', 'TIME', 'MEMORY', 'CPU', 'RESTARTS', 'REFUSED']
  const rows = all.map(one => [clipped(shortName(one.name), NAME), ...rateCells(one, recent), ...cellsOf(one)])
  const [head = '', ...lines] = table(
    [heads, ...rows],
    heads.map((_, at) => (at === 0 ? 'left' : 'right'))
  ).split('\n')
  const paint = (line: string, at: number) => (isBad(all[at]!) ? styleText('red', line, { stream: process.stdout }) : line)
  return [styleText('bold', head, { stream: process.stdout }), ...lines.map(paint)].join('\n')
}

const isBad = ({ isolated }: PluginUsage) => isolated !== undefined && (isolated.quarantined || isolated.restarts > 0)

/** How often, and how much of one processor's time: above 100 % where calls overlap. */
function rateCells({ name }: PluginUsage, recent: Recent | undefined): string[] {
  if (recent === undefined) return []
  const { calls = 0, ms = 0 } = recent.of.get(name) ?? {}
  return [counted(calls / recent.seconds), `${(ms / 10 / recent.seconds).toFixed(1)} %`]
}

function cellsOf({ calls, errors, ms, isolated }: PluginUsage): string[] {
  const worked = [counted(calls), counted(errors), milliseconds(ms)]
  if (isolated === undefined) return [...worked, '', '', '', '']
  const { memoryBytes, cpuMs, restarts, refusals, quarantined } = isolated
  const state = quarantined ? 'quarantined' : counted(restarts)
  return [...worked, `${counted(memoryBytes / MIB)} MiB`, milliseconds(cpuMs), state, counted(refusals)]
}
