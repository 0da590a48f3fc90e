import type { Json, QuarantinedName } from '@svc/core/contracts'

/** Whether a version of a plugin is in quarantine. Of two records of the same version the later one holds. */
export interface QuarantineRecord extends QuarantinedName {
  readonly version: string
  readonly quarantined: boolean
  /** When it changed, in Unix milliseconds: later than any record that its writer knew. */
  readonly at: number
}

/** Further records replace the oldest ones: others send them, so their number needs a limit. */
const MOST_RECORDS = 200
const LONGEST = { plugin: 214, instance: 200, version: 100 } as const
/** Records that are further in the future are not valid. Clocks of nodes differ by less. */
const AHEAD_MS = 24 * 3_600_000
/** Records in a message: a message of the bus has at most 64 KiB. */
const PART = 20

/** The records of a message. Leaves out what is not a valid record, and fields that are unknown. */
export function recordsIn(message: unknown, now = Date.now()): QuarantineRecord[] {
  return Array.isArray(message) ? message.slice(0, MOST_RECORDS).flatMap(item => recordIn(item, now) ?? []) : []
}

function recordIn(item: unknown, now: number): QuarantineRecord | undefined {
  const { plugin, instance, version, quarantined, at } = Object(item) as Record<string, unknown>
  const name = nameIn(item)
  if (!name || !isText(plugin, LONGEST.plugin) || !isText(version, LONGEST.version, 0)) return undefined
  if (instance !== undefined && !isText(instance, LONGEST.instance)) return undefined
  if (typeof quarantined !== 'boolean' || !Number.isSafeInteger(at) || Number(at) < 0 || Number(at) > now + AHEAD_MS)
    return undefined
  return { ...name, version, quarantined, at: Number(at) }
}

/** The name in a record, or in a message of the supervisor. */
export function nameIn(item: unknown): QuarantinedName | undefined {
  const { plugin, instance } = Object(item) as Record<string, unknown>
  if (!isText(plugin, LONGEST.plugin)) return undefined
  return { plugin, ...(isText(instance, LONGEST.instance) ? { instance } : {}) }
}

const isText = (value: unknown, longest: number, shortest = 1): value is string =>
  typeof value === 'string' && value.length >= shortest && value.length <= longest

/** The newest records of all versions that were ever in quarantine. */
export class QuarantineRecords {
  readonly #records = new Map<string, QuarantineRecord>()

  get(name: QuarantinedName, version: string): QuarantineRecord | undefined {
    return this.#records.get(keyOf(name, version))
  }

  /** Whether there is a record of any version of the plugin. */
  knows({ plugin, instance }: QuarantinedName): boolean {
    return this.list().some(record => record.plugin === plugin && record.instance === instance)
  }

  /** Keeps a record. Returns false if a later one is known. */
  merge(record: QuarantineRecord): boolean {
    const key = keyOf(record, record.version)
    const known = this.#records.get(key)
    if (known && (known.at > record.at || (known.at === record.at && known.quarantined >= record.quarantined))) return false
    this.#records.set(key, record)
    if (this.#records.size > MOST_RECORDS) this.#records.delete(this.#oldest())
    return true
  }

  /** The time of a new record, which replaces the known one. */
  next(name: QuarantinedName, version: string): number {
    return Math.max(Date.now(), (this.get(name, version)?.at ?? 0) + 1)
  }

  /** All records, the newest first, in parts that fit into a message. */
  parts(): Json[][] {
    const all = this.list().toSorted((a, b) => b.at - a.at)
    return Array.from({ length: Math.ceil(all.length / PART) }, (_, at) => toJson(all.slice(at * PART, (at + 1) * PART)))
  }

  list(): QuarantineRecord[] {
    return [...this.#records.values()]
  }

  #oldest(): string {
    return [...this.#records].reduce((a, b) => (b[1].at < a[1].at ? b : a))[0]
  }
}

export const toJson = (records: readonly QuarantineRecord[]): Json[] => records.map(record => ({ ...record }))

const keyOf = ({ plugin, instance }: QuarantinedName, version: string) => JSON.stringify([plugin, instance ?? null, version])
