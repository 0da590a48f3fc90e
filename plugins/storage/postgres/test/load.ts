import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import type { StoreOp } from '@svc/core/contracts'
import { expect } from 'chai'
import type { PostgresStore } from '../src/store.ts'
import { ctx } from './support.ts'

/** A space with a watched collection. */
export const SPACE = {
  name: 'failures',
  version: 1,
  collections: { notes: { watched: true }, plain: {} },
  logs: ['lines'],
} as const
export const put = (key: string, value: number): StoreOp => ({ op: 'put', collection: 'plain', key, value })
const lengthOf = async (store: PostgresStore, id: string) => (await store.read('lines', id, { limit: 9 }, ctx)).length

/** The outcome of a batch: `done`, or its code. */
export const outcomeOf = (store: PostgresStore, ops: readonly StoreOp[]): Promise<string> =>
  store.batch(ops, {}, ctx).then(
    () => 'done',
    (error: unknown) => codeOf(error) ?? String(error)
  )

/** Writes batches until its end; each puts a record and appends an entry. */
export function writeMany(store: PostgresStore, name: string, writers = 16) {
  const outcomes = new Map<string, string>()
  let isOver = false
  const work = Array.from({ length: writers }, async (_, writer) => {
    for (let n = 0; !isOver; n++) {
      const id = `${name}-${writer}-${n}`
      outcomes.set(id, await outcomeOf(store, [put(id, n), { op: 'append', log: 'lines', id, values: [n] }]))
    }
  })
  const end = async () => {
    isOver = true
    await Promise.all(work)
  }
  return { outcomes, end, [Symbol.asyncDispose]: end }
}

/** Compares what was reported with what is stored. Returns the number of batches by outcome. */
export async function audit(store: PostgresStore, outcomes: ReadonlyMap<string, string>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const [id, outcome] of outcomes) {
    counts[outcome] = (counts[outcome] ?? 0) + 1
    const [record, entries] = [await store.get('plain', id, ctx), await lengthOf(store, id)]
    expect(entries, `${id} is there in part or twice`).to.equal(record === undefined ? 0 : 1)
    if (outcome === 'done') expect(entries, `${id} was acknowledged and is lost`).to.equal(1)
    if (outcome === 'STORE_UNAVAILABLE') expect(entries, `${id} was reported as not done`).to.equal(0)
    expect(['done', 'STORE_UNAVAILABLE', 'STORE_UNSURE']).to.include(outcome)
  }
  return counts
}

export async function until(isSo: () => Promise<boolean> | boolean, ms = 20_000): Promise<void> {
  for (const end = performance.now() + ms; !(await isSo()); await sleep(20))
    if (performance.now() > end) throw new Error(`it was not so within ${ms} ms`)
}
