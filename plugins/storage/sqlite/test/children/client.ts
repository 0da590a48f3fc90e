// Another process on the same file: runs commands that arrive by IPC, and confirms each.
import { setTimeout } from 'node:timers/promises'
import { systemContext } from '@svc/core'
import type { Space, StoreChange } from '@svc/core/contracts'
import { createSqliteStore } from '../../src/store.ts'

const [path, space, task, name] = process.argv.slice(2) as [string, string, string, string]
const ctx = systemContext(new AbortController().signal)
const store = createSqliteStore({ path })
const say = (message: unknown) => process.send!(message)
const nextMessage = () => new Promise<void>(resolve => process.once('message', () => resolve()))

const tasks: Record<string, () => Promise<void>> = {
  /** Writes for ever, 16 batches at once, and says what was acknowledged. */
  async write() {
    const write = async (n: number): Promise<void> => {
      await store.batch(
        [
          { op: 'put', collection: 'notes', key: `k${n}`, value: { n, text: 'x'.repeat(300) } },
          { op: 'append', log: 'lines', id: `k${n}`, values: [n, n] },
        ],
        {},
        ctx
      )
      say(n)
      return write(n + 16)
    }
    await Promise.all(Array.from({ length: 16 }, (_, n) => write(n)))
  },
  /** Takes a lease, writes with it, and holds it until the next message. */
  async hold() {
    const lease = await store.acquire('shared', { holder: name, ttlMs: 60_000, waitMs: 10_000 }, ctx)
    await store.batch([{ op: 'put', collection: 'notes', key: 'by', value: name }], { fence: lease }, ctx)
    say(lease.fence)
    await nextMessage()
    await store.release(lease, ctx)
    say('released')
    await nextMessage()
  },
  /** Adds one to a counter 200 times, each time unless another process did meanwhile, and appends the result. */
  async count() {
    for (let done = 0; done < 200; ) {
      const there = await store.get('notes', 'counter', ctx)
      const next = Number(there?.value ?? 0) + 1
      const ops = [
        { op: 'put', collection: 'notes', key: 'counter', value: next, ifVersion: there?.version ?? 0 },
        { op: 'append', log: 'lines', id: 'counter', values: [next] },
      ] as const
      done += await store.batch(ops, {}, ctx).then(
        () => 1,
        () => setTimeout(1, 0)
      )
    }
  },
  /** Hits one key for ever, 16 at once, and says how many hits it had after each. */
  async hit() {
    const hit = async (): Promise<void> => {
      const { counted, windows } = await store.count('shared', [{ ms: 3_600_000, limit: 1_000_000 }], ctx)
      if (counted) say(windows[0]!.count)
      return hit()
    }
    await Promise.all(Array.from({ length: 16 }, hit))
  },
  /** Puts and deletes the same 20 records 600 times, 8 batches at once. */
  async change() {
    const change = async (n: number): Promise<void> => {
      if (n >= 600) return
      const key = `k${n % 20}`
      await store.batch(
        [n % 7 ? { op: 'put', collection: 'notes', key, value: n } : { op: 'delete', collection: 'notes', key }],
        {},
        ctx
      )
      if (n % 50 === 0) say(n)
      return change(n + 8)
    }
    await Promise.all(Array.from({ length: 8 }, (_, n) => change(n)))
  },
  /** Watches, reads what is there, follows the changes until the record `end` comes, and says the versions that it knows then. */
  async follow() {
    const versions: Record<string, number> = {}
    const changes = store.watch('notes', ctx)[Symbol.asyncIterator]()
    for (const { key, version } of (await store.range('notes', { limit: 1000 }, ctx)).records) versions[key] = version
    say('follows')
    for (;;) {
      const { value } = (await changes.next()) as IteratorYieldResult<StoreChange>
      if (value.version === 0) delete versions[value.key]
      else versions[value.key] = value.version
      if (value.key === 'end') break
    }
    say(versions)
  },
  /** Hits one key 400 times at once, and says how many hits were counted. */
  async hits() {
    const hit = () => store.count('shared', [{ ms: 3_600_000, limit: 500 }], ctx)
    const done = await Promise.all(Array.from({ length: 400 }, hit))
    say(done.filter(item => item.counted).length)
  },
}

await store.open(JSON.parse(space) as Space, ctx)
say('open')
await tasks[task]!()
await store[Symbol.asyncDispose]()
say('closed')
process.disconnect()
