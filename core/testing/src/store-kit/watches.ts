import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store, StoreChange, StoreOp } from '@svc/core/contracts'
import { abortable, type Rig, type StoreCase } from './rig.ts'

const put = (key: string, value: number, collection = 'watched'): StoreOp => ({ op: 'put', collection, key, value })

interface Watching {
  /** Reads changes until one has this key and value (absent for a deletion). */
  until(key: string, value?: number): Promise<StoreChange[]>
  next(): Promise<IteratorResult<StoreChange>>
  abort(): void
}

/** Starts to watch. When it returns, every later change is seen. */
async function watch({ ctx }: Rig, watcher: Store, writer: Store): Promise<Watching> {
  const own = abortable(ctx)
  const changes = watcher.watch('watched', own.ctx)[Symbol.asyncIterator]()
  const next: () => Promise<IteratorResult<StoreChange>> = () => changes.next()
  // The store decides when a watch is active, so the case writes until a change arrives.
  let heard: StoreChange | undefined
  const first = next().then(({ value }) => (heard = value))
  for (let call = 1; !heard; call++) {
    await writer.batch([put('call', call)], {}, ctx)
    await Promise.race([first, sleep(5)])
  }
  const until = async (key: string, value?: number) => {
    const seen: StoreChange[] = []
    for (;;) {
      const { value: change, done } = await next()
      if (done) return assert.fail(`the watch ended before ${key} became ${value}`)
      seen.push(change)
      if (change.key === key && change.value === value) return seen
    }
  }
  return { until, next, abort: () => own.abort() }
}

const withoutCalls = (changes: readonly StoreChange[]) =>
  changes.filter(change => change.key !== 'call').map(change => ({ ...change }))

/** Watches. */
export const watchCases: readonly StoreCase[] = [
  [
    'reports puts and deletes of both handles',
    async rig => {
      const other = await rig.second()
      const watching = await watch(rig, rig.store, rig.store)
      for (const writer of [rig.store, other]) {
        await writer.batch([put('a', 1)], {}, rig.ctx)
        const seen = await watching.until('a', 1)
        assert.deepEqual(withoutCalls(seen), [{ collection: 'watched', key: 'a', version: 1, value: 1 }])
        await writer.batch([{ op: 'delete', collection: 'watched', key: 'a' }], {}, rig.ctx)
        assert.deepEqual(withoutCalls(await watching.until('a')), [{ collection: 'watched', key: 'a', version: 0 }])
      }
      watching.abort()
    },
  ],
  [
    'never skips the last value of a key, and never shows an older value after a newer one, even to a slow reader',
    async rig => {
      const other = await rig.second()
      const watching = await watch(rig, rig.store, other)
      const writers = Array.from({ length: 5 }, async (_, key) => {
        for (let value = 1; value <= 40; value++) await other.batch([put(`k${key}`, value)], {}, rig.ctx)
      })
      await Promise.all(writers)
      await other.batch([put('end', 1)], {}, rig.ctx)
      const last = new Map<string, number>()
      for (const change of await watching.until('end', 1)) {
        if (change.key !== 'call')
          assert.ok(change.version >= (last.get(change.key) ?? 0), `${change.key} went back to version ${change.version}`)
        last.set(change.key, change.version)
      }
      for (let key = 0; key < 5; key++) assert.equal(last.get(`k${key}`), 40)
      watching.abort()
    },
  ],
  [
    'reports neither other collections nor failed batches',
    async rig => {
      const watching = await watch(rig, rig.store, rig.store)
      await rig.batch(put('x', 1, 'plain'), put('x', 1, 'other_watched'))
      await assert.rejects(rig.batch(put('y', 1), { op: 'put', collection: 'plain', key: 'x', value: 2, ifVersion: 9 }))
      await rig.batch(put('end', 1))
      assert.deepEqual(withoutCalls(await watching.until('end', 1)), [
        { collection: 'watched', key: 'end', version: 1, value: 1 },
      ])
      watching.abort()
    },
  ],
  [
    'notifies several watchers, each at its own pace',
    async rig => {
      const other = await rig.second()
      const both = [await watch(rig, rig.store, rig.store), await watch(rig, other, rig.store)]
      await rig.batch(put('a', 1), put('b', 2))
      for (const watching of both) assert.deepEqual(withoutCalls(await watching.until('b', 2)).length, 2)
      both[0]!.abort()
      await rig.batch(put('c', 3))
      await both[1]!.until('c', 3)
      both[1]!.abort()
    },
  ],
  [
    'ends when the caller aborts, also while it waits',
    async rig => {
      const watching = await watch(rig, rig.store, rig.store)
      const waiting = (async () => {
        for (;;) if ((await watching.next()).done) return
      })()
      watching.abort()
      await waiting.catch(() => {})
      assert.equal((await watching.next()).done, true)
    },
  ],
  [
    'ends when its reader stops',
    async rig => {
      const own = abortable(rig.ctx)
      const loop = (async () => {
        for await (const change of rig.store.watch('watched', own.ctx)) if (change.key) break
      })()
      let ended = false
      const over = loop.then(() => (ended = true))
      for (let call = 1; !ended; call++) {
        await rig.batch(put('a', call))
        await Promise.race([over, sleep(5)])
      }
    },
  ],
  [
    'rejects watches of undeclared collections',
    async rig => {
      await assert.rejects(
        async () => {
          for await (const _ of rig.store.watch('nowhere', rig.ctx)) break
        },
        { code: 'STORE_UNKNOWN' }
      )
    },
  ],
]
