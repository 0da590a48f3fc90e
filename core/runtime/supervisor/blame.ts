import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ExcludedPlugin, HandledPlugin } from '../processes/handling.ts'
import { type AnyWorker, infoOf, type WorkerInfo } from './worker-handle.ts'
import type { SupervisorPeerHub } from './peer-hub.ts'

/**
 * Number of workers of one generation that a plugin can end or block within ten minutes before it is excluded. Smaller than the
 * limit of a crash loop.
 */
const OFFENCES = 3
const WINDOW_MS = 600_000

/** The topic under which workers learn about excluded plugins (see @svc/plugin-isolation). */
export const QUARANTINE = 'isolation.quarantine'

/** An offence of a plugin. */
interface Offence extends HandledPlugin {
  /** Number of offences within ten minutes, including this one. */
  readonly offences: number
  /** The plugin is now excluded from the workers of this generation. */
  readonly quarantined: boolean
}

/** A worker ended while it handled a frame of an isolated plugin. */
export interface BlamedEvent {
  readonly event: 'blamed'
  readonly worker: WorkerInfo
  readonly how: string
  readonly offence: Offence
}

/** Records which isolated plugins ended or blocked workers by their messages. A reload starts anew. */
export interface PluginBlame {
  /** The file in which the next worker leaves its trace; undefined without a folder. */
  newTrace(): string | undefined
  /** Records the end of a worker. Returns the plugin whose frame it handled, if any. */
  judge(member: AnyWorker, how: string): string | undefined
  excluded(generation: number): readonly ExcludedPlugin[]
}

export function createBlame(
  folder: string | undefined,
  hub: Pick<SupervisorPeerHub, 'announce'>,
  report: (event: BlamedEvent) => void
): PluginBlame {
  let workers = 0
  const counted = new Map<string, number[]>()
  const out = new Map<string, { readonly generation: number; readonly plugin: ExcludedPlugin }>()
  const excluded = (generation: number) =>
    [...out.values()].filter(item => item.generation === generation).map(item => item.plugin)
  return {
    newTrace() {
      if (folder === undefined) return undefined
      const path = join(folder, `${process.pid}-${++workers}.trace`)
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        remove(path)
        return path
      } catch {
        return undefined // a worker without a trace is better than none
      }
    },
    judge(member, how) {
      const { trace, generation } = member
      const plugin = trace === undefined ? undefined : takeTrace(trace)
      if (!plugin) return undefined
      const key = JSON.stringify([generation, plugin.plugin, plugin.instance])
      const now = Date.now()
      const times = [...(counted.get(key) ?? []).filter(at => now - at < WINDOW_MS), now]
      counted.set(key, times)
      const quarantined = times.length >= OFFENCES
      if (quarantined) out.set(key, { generation, plugin: { ...plugin, at: now } })
      report({ event: 'blamed', worker: infoOf(member), how, offence: { ...plugin, offences: times.length, quarantined } })
      if (quarantined) hub.announce({ topic: QUARANTINE, message: excluded(generation).map(item => ({ ...item })) }, generation)
      return plugin.plugin
    },
    excluded,
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // The next server with this process id removes it.
  }
}

/** Reads the trace of a worker. Only its own user can write there. */
function takeTrace(path: string): HandledPlugin | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as HandledPlugin
  } catch {
    return undefined // it handled no frame
  } finally {
    remove(path)
  }
}
