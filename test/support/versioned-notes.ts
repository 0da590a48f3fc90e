import { definePlugin, systemContext } from '@svc/core'
import { type Json, Routes, type Space, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'

/** The version of this program: 2 adds the number of words to each note, and an index by it. */
const version = Number(process.env.TEST_PROGRAM ?? 1)
const NOTES = 'versioned_notes'
const SPACE: Space = {
  name: NOTES,
  version,
  collections: { [NOTES]: version === 1 ? {} : { indexes: { by_words: ['words'] } } },
}
const noteOf = (text: string): Json => (version === 1 ? { text } : { text, words: text.split(' ').length })
const body = { type: 'object', properties: { key: { type: 'string' }, text: { type: 'string' } }, required: ['key'] } as const

/** Keeps notes in two versions of their format. Nodes of both stand beside each other during an upgrade. */
export default definePlugin({
  requires: { store: Store },
  async setup(scope, { store }) {
    const migrate = async () => {
      const { records } = await store.range(NOTES, { limit: 100 }, lasting)
      return records.map(({ key, value }) => {
        const { text } = value as { text: string }
        return { op: 'put', collection: NOTES, key, value: noteOf(text) } as const
      })
    }
    const lasting = systemContext(scope.signal)
    await openSpace(store, SPACE, { 1: migrate }, lasting)
    scope.add(Routes, 'put_note', {
      method: 'POST',
      path: '/put-note',
      summary: 'Stores a note',
      scope: 'chat',
      body,
      async handle({ body: note }, ctx) {
        const { key, text } = note as { key: string; text: string }
        await store.batch([{ op: 'put', collection: NOTES, key, value: noteOf(text) }], {}, ctx)
        return { body: { key } }
      },
    })
    scope.add(Routes, 'read_note', {
      method: 'POST',
      path: '/read-note',
      summary: 'Reads a note',
      scope: 'chat',
      body,
      async handle({ body: note }, ctx) {
        return { body: { value: (await store.get(NOTES, (note as { key: string }).key, ctx))?.value ?? null } }
      },
    })
  },
})
