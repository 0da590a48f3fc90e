import { storeError, tooFewConnections } from './errors.ts'
import { createLine } from './line.ts'
import { OTHER_LINES, type PostgresOptions, READERS } from './store.ts'

/** How many connections there are, and for whom. */
interface Usage {
  /** Without those that are reserved for superusers. */
  readonly allowed: number
  readonly used: number
  /** Open stores of svc, this one included: workers, and commands that run at the same time. */
  readonly stores: number
  /** Connections of other programs, and of commands that open no store. */
  readonly others: number
}

const USAGE = `SELECT current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer AS allowed,
    count(*) AS used, count(DISTINCT name) AS stores, count(*) FILTER (WHERE name IS NULL) AS others
  FROM (SELECT substring(application_name FROM '^(svc [^ ]+) (?!command$)') AS name FROM pg_stat_activity WHERE backend_type = 'client backend') AS x`

/**
 * Compares the connections that all stores need with those that PostgreSQL allows. Throws STORE_UNAVAILABLE with the sum if this
 * store cannot get its own; `warn` hears of a sum that is too large. A pooler has its own limits, so nothing is compared.
 */
export async function checkConnections(options: PostgresOptions, warn: (problem: string) => void): Promise<void> {
  const { target, direct, waitMs, readers = READERS } = options
  if (direct) return
  const line = createLine({ ...target, applicationName: `${target.applicationName} start` })
  try {
    const { pooled, server } = await line.session(waitMs)
    if (pooled) return
    const row = (await line.one({ text: USAGE })).rows[0]!
    const [allowed, used, stores, others] = ['allowed', 'used', 'stores', 'others'].map(name => Number(row[name]))
    const problem = problemOf({ allowed: allowed!, used: used!, stores: stores!, others: others! }, readers + OTHER_LINES)
    if (problem?.isFatal) throw tooFewConnections(problem.sum, server)
    if (problem) warn(`PostgreSQL allows too few connections: ${problem.sum}`)
  } catch (error) {
    throw storeError(error)
  } finally {
    await line.close()
  }
}

/** What is wrong with the sum, if anything. `each`: connections of a store. */
export function problemOf(
  { allowed, used, stores, others }: Usage,
  each: number
): { readonly sum: string; readonly isFatal: boolean } | undefined {
  const total = stores * each + others
  if (total <= allowed) return undefined
  const sum = `${stores} × ${each} for workers and commands of svc + ${others} others = ${total}, but PostgreSQL allows ${allowed}`
  // the connection of this check is closed again
  return { sum, isFatal: allowed - (used - 1) < each }
}
