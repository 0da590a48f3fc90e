import { createLine, type Line, type Target, type WatchedLine } from './line.ts'

/** A line that has waited for this time without a byte from the server is checked; how often that is looked at. */
const [SILENT_MS, LOOK_MS] = [3_000, 500]
/** As soon as one connection is half open, others that are silent for this time are suspicious too. */
const SUSPICIOUS_MS = 1_000
/** The connection that asks can become half open, too: another one asks soon. */
const CHECK_LIMITS = { connectMs: 3_000, statementMs: 500 }

/** The sessions of these processes that work on a statement: others have answered, or have never got it. */
const WORKING = `SELECT pid FROM pg_stat_activity WHERE pid = ANY($1::integer[]) AND state = 'active'
  AND wait_event IS DISTINCT FROM 'ClientRead' AND wait_event IS DISTINCT FROM 'ClientWrite'`

/**
 * Finds half-open connections long before their statements time out. If a line waits for an answer in silence, another connection asks
 * the server whether it works on a statement of this line. If it does not, the line is lost; idle lines are replaced with it, because
 * what has broken one connection can have broken all. Connections through a pooler have no process of their own, so only their
 * time-outs end them.
 */
export class HalfOpenWatch {
  readonly #direct: Target
  readonly #lines = new Set<WatchedLine>()
  #timer: NodeJS.Timeout | undefined
  /** The connection that asks. */
  #asking: Line | undefined
  #isClosed = false

  /** `direct`: PostgreSQL itself. */
  constructor(direct: Target) {
    this.#direct = direct
  }

  add(line: WatchedLine): void {
    this.#lines.add(line)
  }

  /** A line waits for an answer. */
  readonly busy = (): void => {
    if (!this.#isClosed) this.#timer ??= setTimeout(() => void this.#look(), LOOK_MS).unref()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#asking?.abort()
  }

  async #look(): Promise<void> {
    const suspects = this.#silent(SILENT_MS)
    // without another connection nothing is known, and the statements time out
    if (suspects.length > 0) await this.#check(suspects).catch(() => {})
    this.#timer = undefined
    if ([...this.#lines].some(line => line.traffic()?.isWaiting)) this.busy()
  }

  #silent(ms: number): { readonly line: WatchedLine; readonly pid: number }[] {
    return [...this.#lines].flatMap(line => {
      const traffic = line.traffic()
      return traffic?.isWaiting && traffic.silentMs >= ms ? [{ line, pid: traffic.pid }] : []
    })
  }

  async #check(suspects: readonly { readonly line: WatchedLine; readonly pid: number }[]): Promise<void> {
    const others = this.#silent(SUSPICIOUS_MS)
    const working = await this.#workingOf([...suspects, ...others].map(({ pid }) => pid))
    // an answer can have come meanwhile: a worker that was blocked reads it only now
    const isLost = ({ line, pid }: (typeof suspects)[number]) => !working.has(pid) && isSilent(line, pid)
    if (!suspects.some(isLost)) return
    const lost = new Set(others.filter(isLost).map(({ line }) => line))
    for (const line of this.#lines) if (lost.has(line) || line.traffic()?.isWaiting === false) line.drop()
  }

  async #workingOf(pids: readonly number[]): Promise<ReadonlySet<number>> {
    const line = (this.#asking = createLine({
      ...this.#direct,
      ...CHECK_LIMITS,
      applicationName: `${this.#direct.applicationName} check`,
    }))
    try {
      const { rows } = await line.one({ text: WORKING }, [pids])
      return new Set(rows.map(({ pid }) => Number(pid)))
    } finally {
      await line.close()
    }
  }
}

function isSilent(line: WatchedLine, pid: number): boolean {
  const traffic = line.traffic()
  return traffic?.pid === pid && traffic.isWaiting && traffic.silentMs >= SUSPICIOUS_MS
}
