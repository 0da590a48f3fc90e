import { storeError, tooFewConnections } from './errors.ts'
import { createLine } from './line.ts'
import { OTHER_LINES, type PostgresOptions, READERS } from './store.ts'

/** How many connections there are, and for whom. */
interface Usage {
  /** Without those that are reserved for superusers. */
  readonly allowed: number
  readonly used: number
  /** Workers of svc, this one included. */
  readonly workers: number
  /** Connections of other programs. */
  readonly others: number
}

const USAGE = `SELECT current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer AS allowed,
    count(*) AS used, count(DISTINCT name) AS workers, count(*) FILTER (WHERE name IS NULL) AS others
  FROM (SELECT substring(application_name FROM '^(svc [^ ]+) ') AS name FROM pg_stat_activity WHERE backend_type = 'client backend') AS x`

/**
 * Compares the connections that all workers need with those that PostgreSQL allows. Throws STORE_UNAVAILABLE with the sum if this
 * worker cannot get its own; `warn` hears of a sum that is too large. A pooler has its own limits, so nothing is compared.
 */
export async function checkConnections(options: PostgresOptions, warn: (problem: string) => void): Promise<void> {
  const { target, direct, waitMs, readers = READERS } = options
  if (direct) return
  const line = createLine({ ...target, applicationName: `${target.applicationName} start` })
  try {
    if ((await line.session(waitMs)).pooled) return
    const row = (await line.one({ text: USAGE })).rows[0]!
    const [allowed, used, workers, others] = ['allowed', 'used', 'workers', 'others'].map(name => Number(row[name]))
    const problem = problemOf({ allowed: allowed!, used: used!, workers: workers!, others: others! }, readers + OTHER_LINES)
    if (problem?.isFatal) throw tooFewConnections(problem.sum)
    if (problem) warn(`PostgreSQL allows too few connections: ${problem.sum}`)
  } catch (error) {
    throw storeError(error)
  } finally {
    await line.close()
  }
}

/** What is wrong with the sum, if anything. `each`: connections of a worker. */
export function problemOf(
  { allowed, used, workers, others }: Usage,
  each: number
): { readonly sum: string; readonly isFatal: boolean } | undefined {
  const total = workers * each + others
  if (total <= allowed) return undefined
  const sum = `${workers} × ${each} for workers of svc + ${others} of other programs = ${total}, but PostgreSQL allows ${allowed}`
  // the connection of this check is closed again
  return { sum, isFatal: allowed - (used - 1) < each }
}
