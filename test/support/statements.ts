import type { Postgres } from '@svc/testing/engines'

/** Settings of a PostgreSQL with a log of all statements, which SQL can read. */
export const LOGGED = {
  log_statement: 'all',
  log_line_prefix: '@%p %v %a|',
  logging_collector: true,
  log_filename: 'statements',
  log_rotation_size: 0,
} as const

/** A statement that PostgreSQL has executed. */
export interface Executed {
  /** The same for all statements of a transaction, and for no others. */
  readonly transaction: string
  /** The application name of the connection. */
  readonly application: string
  readonly text: string
}

/** The statements from a place in the log on, and the place behind them. */
export async function statementsFrom(
  postgres: Postgres,
  place = 0
): Promise<{ readonly all: readonly Executed[]; readonly next: number }> {
  const [row] = await postgres.query<{ log: string }>(
    'SELECT pg_read_file(f, $1, (pg_stat_file(f)).size - $1) AS log FROM pg_current_logfile() AS f',
    [place]
  )
  const { log } = row!
  const all = log.split(/^@/m).flatMap(line => {
    const found = /^(\d+ \d+\/\d+) ([^|]*)\|LOG: {2}(?:execute [^:]*|statement): (.*)$/s.exec(line)
    return found ? [{ transaction: found[1]!, application: found[2]!, text: found[3]!.trim() }] : []
  })
  return { all, next: place + Buffer.byteLength(log) }
}
