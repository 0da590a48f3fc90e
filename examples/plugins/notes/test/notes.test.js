import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { Routes, Tools } from '@svc/core/contracts'
import { consolePageKit, testContext, testHost } from '@svc/testing'
import samples from './samples.js'

// `svc plugins test` runs the whole kit. It starts the plugins of svc that provide the store.

for (const { title, run } of await consolePageKit(new URL('..', import.meta.url))) test(title, run)

test('adds notes, lists them with the newest first, and removes one once', async () => {
  await using host = await testHost(['@svc/plugin-store-memory', new URL('..', import.meta.url)])
  const ctx = testContext()
  const call = async (/** @type {string} */ name, /** @type {object} */ request) => {
    const answer = await host
      .slot(Routes)
      .get(name)
      ?.handle?.({ params: {}, query: {}, headers: {}, body: {}, ...request }, ctx)
    return /** @type {any} */ (answer)
  }
  for (const text of samples.texts) equal((await call('note_add', { body: { text } })).status, 201)
  const { notes } = (await call('notes', {})).body
  deepEqual(
    notes.map((/** @type {{ text: string }} */ { text }) => text),
    samples.texts.toReversed()
  )
  equal((await call('note_remove', { params: { id: notes[0].id } })).status, 204)
  await rejects(call('note_remove', { params: { id: notes[0].id } }), { code: 'INVALID_VALUE' })
  equal((await call('notes', {})).body.notes.length, samples.texts.length - 1)
})

test('keeps the notes of each run apart', async () => {
  await using host = await testHost(['@svc/plugin-store-memory', new URL('..', import.meta.url)])
  const ctx = testContext()
  const call = async (/** @type {string} */ name, /** @type {object} */ request) => {
    const answer = await host
      .slot(Routes)
      .get(name)
      ?.handle?.({ params: {}, query: {}, headers: {}, body: {}, ...request }, ctx)
    return /** @type {any} */ (answer)
  }
  for (const run of ['a', 'ab']) await call('run_note_add', { params: { run }, body: { text: `of ${run}` } })
  for (const run of ['a', 'ab']) {
    const { notes } = (await call('run_notes', { params: { run } })).body
    deepEqual(
      notes.map((/** @type {{ text: string }} */ { text }) => text),
      [`of ${run}`]
    )
  }
  equal((await call('notes', {})).body.notes.length, 0)
})

test('finds notes by a part of their text', async () => {
  await using host = await testHost(['@svc/plugin-store-memory', new URL('..', import.meta.url)])
  const ctx = testContext()
  for (const text of ['The queue is full', 'All is well'])
    await host.slot(Routes).get('note_add')?.handle?.({ params: {}, query: {}, headers: {}, body: { text } }, ctx)
  const found = await host.slot(Tools).get('find_notes')?.call({ text: 'QUEUE' }, ctx)
  const { count, notes } = /** @type {any} */ (found).structured
  deepEqual([count, notes[0].text], [1, 'The queue is full'])
})
