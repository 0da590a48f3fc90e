import type { Log } from '@svc/core'
import { codeOf, messageOf, svcError } from '@svc/core'
import type { JobInsert, PgBoss } from 'pg-boss'

export type { JobInsert }

/** The queue of workflow runs in pg-boss. */
export const RUNS_QUEUE = 'runs'

/** pg-boss needs this version of Node.js. */
const LEAST_NODE = [22, 12] as const
/** A name of a schema in pg-boss has at most 50 bytes. */
const MOST_SCHEMA = 50
const SUFFIX = '_queue'
const DAY_S = 86_400
/** About 68 years. */
const NEVER_S = 2 ** 31 - 1
/** pg-boss itself would call a claim lost after this time. svc looks earlier, and runs no supervision of pg-boss. */
const HEARTBEAT_S = 120
/** SQLSTATEs of an installation that another server has finished first, with the texts that pg-boss looks for. */
const RACES: Readonly<Record<string, string>> = {
  '23505': 'already exists',
  '42P06': 'already exists',
  '42P07': 'already exists',
  '42710': 'already exists',
  '22012': 'division by zero',
}

export interface BossOptions {
  /** Sends a statement, or several without values. An error has `details.sqlState`, if it is of PostgreSQL. */
  readonly send: (text: string, values?: readonly unknown[]) => Promise<{ readonly rows: readonly object[] }>
  /** The schema of the store, without quotes. */
  readonly storeSchema: string
  /** Whether missing tables are created, and old ones changed. */
  readonly mayMigrate: boolean
  readonly log: Pick<Log, 'warn' | 'debug'>
  /** `process.versions.node`. */
  readonly node?: string
}

/** An open pg-boss. It has no timers that matter: svc fetches, and watches claims. */
export interface OpenBoss {
  readonly boss: PgBoss
  /** The schema of its tables, as a part of a statement. */
  readonly schema: string
}

/** The schema of pg-boss beside that of the store. */
export function bossSchema(storeSchema: string): string {
  const name = `${storeSchema}${SUFFIX}`
  if (name.length > MOST_SCHEMA)
    throw svcError(
      'STORE_CONFIG_INVALID',
      `store.schema is too long for the queue: "${name}" has more than ${MOST_SCHEMA} characters`,
      {
        hint: `Use a schema with at most ${MOST_SCHEMA - SUFFIX.length} characters`,
      }
    )
  return name
}

/** Throws QUEUE_NODE_OLD. */
export function requireNode(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1])) return
  throw svcError('QUEUE_NODE_OLD', `the queue in PostgreSQL needs Node.js ${LEAST_NODE.join('.')} or newer, this is ${version}`, {
    hint: 'Install a newer Node.js, or replace @svc/plugin-queue-pgboss with @svc/plugin-queue-store in "plugins"',
  })
}

/**
 * Opens pg-boss in a schema of its own, and creates the queue of runs. pg-boss creates and migrates its tables in one transaction under an
 * advisory lock. Its cron, its supervision and its notifications are off.
 */
export async function openBoss({
  send,
  storeSchema,
  mayMigrate,
  log,
  node = process.versions.node,
}: BossOptions): Promise<OpenBoss> {
  requireNode(node)
  const schema = bossSchema(storeSchema)
  // only a store in PostgreSQL loads it
  const { PgBoss: Boss } = await import('pg-boss')
  const boss = new Boss({
    db: { executeSql: (text, values) => execute(send, text, values) },
    schema,
    migrate: mayMigrate,
    schedule: false,
    supervise: false,
    useListenNotify: false,
    registerInstance: false,
    reindex: false,
    monitorVacuum: false,
    openTelemetry: { enabled: false },
    queueCacheIntervalSeconds: DAY_S,
  })
  boss.on('error', err => log.debug({ err }, 'pg-boss reports an error'))
  boss.on('warning', ({ message }) => log.warn({ reason: message }, 'pg-boss reports a problem'))
  try {
    await boss.start()
    await boss.createQueue(RUNS_QUEUE, {
      policy: 'stately',
      notify: false,
      retryLimit: NEVER_S,
      retryDelay: 0,
      expireInSeconds: DAY_S,
      heartbeatSeconds: HEARTBEAT_S,
      retentionSeconds: NEVER_S,
    })
    return { boss, schema }
  } catch (error) {
    await boss.stop({ graceful: false, close: false }).catch(() => {})
    throw openingFailed(error, schema)
  }
}

async function execute(send: BossOptions['send'], text: string, values?: readonly unknown[]): Promise<{ rows: object[] }> {
  try {
    const { rows } = await send(text, values?.map(plain))
    return { rows: [...rows] }
  } catch (error) {
    const state = (error as { details?: { sqlState?: unknown } }).details?.sqlState
    if (typeof state !== 'string') throw error
    throw Object.assign(new Error(`${messageOf(error)}: ${RACES[state] ?? state}`, { cause: error }), { code: state })
  }
}

/** Objects are JSON, as the driver would send them. */
function plain(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? JSON.stringify(value) : value
}

/** The error of the store below an error of pg-boss, if there is one. */
export function storeErrorBelow(error: unknown): unknown {
  for (let at = error; at instanceof Error; at = at.cause) if (codeOf(at)?.startsWith('STORE_')) return at
  return error
}

function openingFailed(error: unknown, schema: string): unknown {
  const known = storeErrorBelow(error)
  if (codeOf(known)?.startsWith('STORE_')) return known
  return svcError('STORE_UNAVAILABLE', `the queue in the schema "${schema}" cannot be opened: ${messageOf(error)}`, {
    details: { retryable: true },
    hint: 'Run `svc store init` as a user who may create the schema',
    cause: error,
  })
}
