import { type Log, systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import type { TracesConfig } from '../src/config.ts'
import { keyOf, ROOTS, type RootRecord, SPACE, SPANS } from '../src/space.ts'
import { createTraceStorage } from '../src/storage.ts'

const DAY_MS = 86_400_000
const ctx = systemContext(new AbortController().signal, 'test')
const hex = (at: number, length: number) => at.toString(16).padStart(length, '0')

const rootAt = (at: number, start: number, size = 100): RootRecord => ({
  trace: hex(at, 32),
  span: hex(at, 16),
  name: `request ${at}`,
  kind: 'server',
  start,
  end: start + 1,
  status: 'unset',
  principal: 'anna',
  request: `r${at}`,
  plugin: 'test',
  worker: 'w',
  models: [],
  input: 0,
  output: 0,
  spans: 1,
  errors: 0,
  size,
})

async function open() {
  const host = await testHost([new URL('../../../storage/memory', import.meta.url).href], { strict: false })
  const store = host.service(Store)
  await openSpace(store, SPACE, {}, ctx)
  const storageFor = (keep: Partial<TracesConfig['keep']> = {}, worker = 'w') =>
    createTraceStorage({
      store,
      keep: { days: 7, count: 1_000, bytes: 1e9, ...keep },
      worker,
      log: host.log as Log,
      lasting: ctx,
    })
  /** Stores traces with one span each, from the oldest to the newest. */
  const fill = async (count: number, startOf: (at: number) => number, size?: number) => {
    const storage = storageFor()
    for (let at = 0; at < count; at++) {
      const root = rootAt(at, startOf(at), size)
      storage.spans(keyOf(root.trace, root.span), [{ s: root.span, n: root.name, a: root.start, g: 'test' }])
      storage.root(root)
    }
    await storage.flush()
  }
  const left = async () => {
    const { records } = await store.range(ROOTS, { index: 'by_start', limit: 1_000 }, ctx)
    const spans = await Promise.all(records.map(({ key }) => store.read(SPANS, key, { limit: 10 }, ctx)))
    expect(spans.every(entries => entries.length > 0)).to.equal(true)
    return records.map(({ value }) => (value as unknown as RootRecord).name)
  }
  const spansOf = (at: number) => store.read(SPANS, keyOf(hex(at, 32), hex(at, 16)), { limit: 10 }, ctx)
  return { storageFor, fill, left, spansOf, [Symbol.asyncDispose]: () => host.close() }
}

const names = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `request ${from + at}`)

describe('the storage of traces', () => {
  it('keeps the newest traces up to the count, and deletes the others with their spans', async () => {
    await using opened = await open()
    await opened.fill(1_250, at => Date.now() - 10_000 + at)
    await opened.storageFor({ count: 40 }).prune()
    expect(await opened.left()).to.deep.equal(names(1_210, 1_250))
    expect(await opened.spansOf(0)).to.deep.equal([])
    await opened.storageFor({ count: 40 }).prune()
    expect(await opened.left()).to.have.length(40)
  })

  it('deletes traces that are too old, and those beyond the size', async () => {
    await using opened = await open()
    await opened.fill(10, at => Date.now() - (10 - at) * DAY_MS - 60_000)
    await opened.storageFor({ days: 3 }).prune()
    expect(await opened.left()).to.deep.equal(names(8, 10))
    await opened.fill(10, at => Date.now() - 1_000 + at, 100_000)
    await opened.storageFor({ bytes: 350_000 }).prune()
    expect(await opened.left()).to.deep.equal(names(7, 10))
  })

  it('is pruned by several workers at once as by one', async () => {
    await using opened = await open()
    await opened.fill(300, at => Date.now() - 10_000 + at)
    await Promise.all(['a', 'b', 'c'].map(worker => opened.storageFor({ count: 50 }, worker).prune()))
    expect(await opened.left()).to.deep.equal(names(250, 300))
  })
})
