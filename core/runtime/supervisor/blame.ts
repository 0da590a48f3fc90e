import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { HandledPlugin } from '../processes/handling.ts'
import { type AnyWorker, infoOf, type WorkerInfo } from './worker-handle.ts'
import type { SupervisorPeerHub } from './peer-hub.ts'

/** Workers of one generation that a plugin may end or block within ten minutes until it is kept out. Fewer than what makes a crash loop. */
const OFFENCES = 3
const WINDOW_MS = 600_000

/** Under which workers hear that a plugin is kept out (@svc/plugin-isolation takes it). */
const QUARANTINE = 'isolation.quarantine'

/** What a plugin is blamed for. */
interface Offence extends HandledPlugin {
  /** How often within ten minutes, this time included. */
  readonly offences: number
  /** It is kept out of the workers of this generation from here on. */
  readonly quarantined: boolean
}

/** A worker has ended while it handled a frame of a plugin that runs in a process of its own. */
export interface BlamedEvent {
  readonly event: 'blamed'
  readonly worker: WorkerInfo
  readonly how: string
  readonly offence: Offence
}

/** Which plugins in processes of their own have ended or blocked workers by what they sent. A reload begins anew. */
export interface PluginBlame {
  /** The file in which the next worker is to leave the trace of what it handled; undefined where there is no folder for it. */
  newTrace(): string | undefined
  /** Counts the end of a worker and reports it; the name of the plugin whose frame it handled then, where there is one. */
  judge(member: AnyWorker, how: string): string | undefined
  excluded(generation: number): readonly HandledPlugin[]
}

export function createBlame(
  folder: string | undefined,
  hub: Pick<SupervisorPeerHub, 'announce'>,
  report: (event: BlamedEvent) => void
): PluginBlame {
  let workers = 0
  const counted = new Map<string, number[]>()
  const out = new Map<string, { readonly generation: number; readonly plugin: HandledPlugin }>()
  const excluded = (generation: number) => [...out.values()].filter(one => one.generation === generation).map(one => one.plugin)
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
      if (quarantined) out.set(key, { generation, plugin })
      report({ event: 'blamed', worker: infoOf(member), how, offence: { ...plugin, offences: times.length, quarantined } })
      if (quarantined) hub.announce({ topic: QUARANTINE, message: excluded(generation).map(one => ({ ...one })) }, generation)
      return plugin.plugin
    },
    excluded,
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // the next server of this process id does it
  }
}

/** What a worker has left; its own user alone can write there. */
function takeTrace(path: string): HandledPlugin | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as HandledPlugin
  } catch {
    return undefined // it handled none
  } finally {
    remove(path)
  }
}
