import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { systemContext } from '@svc/core'
import { Store, type StoreOp } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import type { Postgres } from '@svc/testing/engines'
import { COMPILED, SVC } from './entry.ts'
import { until } from './wait.ts'

export const ctx = systemContext(new AbortController().signal)
const SQLITE = new URL('../../plugins/storage/sqlite/', import.meta.url)

export const SPACE = {
  name: 'moved',
  version: 3,
  collections: {
    notes: { watched: true, indexes: { by_owner: ['owner', 'n'] }, text: { words: { fields: ['text'], filters: ['owner'] } } },
    rights: { lasting: true },
  },
  logs: ['lines'],
} as const

export const noteOf = (n: number) => ({
  owner: n % 3 === 0 ? 'anna' : 'berta',
  n,
  text: `note ${n} of the ${n % 7 === 0 ? 'harbour' : 'tower'}`,
})
export const keyOf = (n: number) => `n${String(n).padStart(7, '0')}`

/** Fills the store of a home: notes, streams with one and with several entries in an append, and awkward texts. */
export async function fill(home: string, count: number): Promise<void> {
  await using host = await testHost([SQLITE], { config: { store: { path: join(home, 'svc.db') } } })
  const store = host.service(Store)
  await store.open(SPACE, ctx)
  for (let from = 0; from < count; from += 1_000) {
    const numbers = Array.from({ length: Math.min(1_000, count - from) }, (_, at) => from + at)
    const ops = numbers.flatMap((n): StoreOp[] => [
      { op: 'put', collection: 'notes', key: keyOf(n), value: noteOf(n) },
      { op: 'append', log: 'lines', id: `stream ${n % 500}`, values: n % 2 ? [{ n }] : [{ n }, 'half \ud800 and \u0000', null] },
    ])
    await store.batch(ops, {}, ctx)
  }
  await store.batch([{ op: 'put', collection: 'notes', key: keyOf(1), value: { ...noteOf(1), text: 'again' } }], {}, ctx)
  await store.batch(
    [{ op: 'put', collection: 'rights', key: 'ünïcode \u{1f512} key', value: { text: '\u0000\ud800', x: 1e21 } }],
    {},
    ctx
  )
}

/** Records that a migration has copied so far. */
export const rowsIn = async (postgres: Postgres, schema: string): Promise<number> =>
  Number((await postgres.query(`SELECT count(*) AS n FROM ${schema}.records`).catch(() => []))[0]?.n ?? 0)

interface KilledMigration {
  /** The home of the file. */
  readonly from: string
  readonly env: Readonly<Record<string, string>>
  /** When it is killed. */
  readonly isReached: () => Promise<boolean>
}

/** Starts `svc store migrate`, and kills it in the middle. Throws if it has ended before. */
export async function killMigration({ from, env, isReached }: KilledMigration): Promise<void> {
  const child = spawn(process.execPath, [...SVC, 'store', 'migrate'], {
    env: { PATH: process.env.PATH, ...COMPILED, ...env, SVC_HOME: from },
    stdio: 'ignore',
  })
  const exit = once(child, 'exit')
  await until(async () => child.exitCode !== null || (await isReached()), Boolean)
  child.kill('SIGKILL')
  const [code, signal] = (await exit) as [number | null, string | null]
  if (signal !== 'SIGKILL') throw new Error(`the migration has ended before it was killed, with exit code ${code}`)
}
