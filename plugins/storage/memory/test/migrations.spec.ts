import { systemContext } from '@svc/core'
import type { Space, Store } from '@svc/core/contracts'
import { type Migrations, openSpace } from '@svc/storage-kit'
import { expect } from 'chai'
import { createMemoryStore } from '../src/store.ts'

const ctx = systemContext(new AbortController().signal)
const notes = (version: number): Space => ({ name: 'notes', version, collections: { notes: {} } })
const codeOf = (work: Promise<unknown>) => work.then(() => 'done').catch(error => error.code)
const note = async (store: Store) => (await store.get('notes', 'a', ctx))?.value as string
const add = (letter: string) => async (context: { store: Store }) => [
  { op: 'put', collection: 'notes', key: 'a', value: (await note(context.store)) + letter } as const,
]
const STEPS: Migrations = { 1: add('b'), 2: add('c') }

const opened = async () => {
  const store = createMemoryStore({ maxRecords: 100, maxBytes: 1 << 20, evict: true })
  await openSpace(store, notes(1), {}, ctx)
  await store.batch([{ op: 'put', collection: 'notes', key: 'a', value: 'a' }], {}, ctx)
  return store
}

describe('opening a space', () => {
  it('runs no migration on a new space', async () => {
    await using store = createMemoryStore({ maxRecords: 100, maxBytes: 1 << 20, evict: true })
    await openSpace(store, notes(3), {}, ctx)
    expect(await store.open(notes(3), ctx)).to.deep.equal({ version: 3 })
  })

  it('runs the missing steps in order, each with its new version', async () => {
    await using store = await opened()
    await openSpace(store, notes(3), STEPS, ctx)
    expect(await note(store)).to.equal('abc')
    expect(await store.open(notes(3), ctx)).to.deep.equal({ version: 3 })
    await openSpace(store, notes(3), STEPS, ctx)
    expect(await note(store)).to.equal('abc')
  })

  it('lets one of several migrate while the others wait', async () => {
    await using store = await opened()
    await Promise.all(Array.from({ length: 5 }, () => openSpace(store, notes(3), STEPS, ctx)))
    expect(await note(store)).to.equal('abc')
  })

  it('keeps the steps that were done when a later one fails, and goes on from there', async () => {
    await using store = await opened()
    const broken: Migrations = { 1: add('b'), 2: async () => Promise.reject(new Error('no luck')) }
    expect(await codeOf(openSpace(store, notes(3), broken, ctx))).to.equal('MIGRATION_FAILED')
    expect(await note(store)).to.equal('ab')
    expect(await store.open(notes(3), ctx)).to.deep.equal({ version: 2 })
    await openSpace(store, notes(3), STEPS, ctx)
    expect(await note(store)).to.equal('abc')
  })

  it('says which step is missing', async () => {
    await using store = await opened()
    expect(await codeOf(openSpace(store, notes(3), { 2: add('c') }, ctx))).to.equal('MIGRATION_MISSING')
    expect(await note(store)).to.equal('a')
  })

  it('refuses data that are newer than the program', async () => {
    await using store = await opened()
    await openSpace(store, notes(3), STEPS, ctx)
    expect(await codeOf(openSpace(store, notes(2), STEPS, ctx))).to.equal('STORE_NEWER')
  })
})
