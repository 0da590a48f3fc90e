import { definePlugin, svcError, systemContext } from '@svc/core'
import { ConsolePages, Routes, Store } from '@svc/core/contracts'
import { openSpace, timelyId } from '@svc/storage-kit'

/** @typedef {import('@svc/core/contracts').Route} Route */
/** @typedef {{ text: string, at: string }} Note */

const NOTES = 'notes'
const SPACE = { name: 'notes', version: 1, collections: { [NOTES]: {} } } // keys sort by time
const MOST = 200

const NOTE = {
  type: 'object',
  properties: { id: { type: 'string' }, text: { type: 'string' }, at: { type: 'string', format: 'date-time' } },
  required: ['id', 'text', 'at'],
}

/** @type {(store: Store) => Record<string, Route>} */
const createRoutes = store => ({
  notes: {
    method: 'GET',
    path: '/notes',
    summary: `List the last ${MOST} notes, newest first`,
    scope: 'read',
    responses: {
      200: {
        description: 'The notes',
        schema: { type: 'object', properties: { notes: { type: 'array', items: NOTE } }, required: ['notes'] },
      },
    },
    async handle(_request, ctx) {
      const { records } = await store.range(NOTES, { reverse: true, limit: MOST }, ctx)
      return { body: { notes: records.map(({ key, value }) => ({ id: key, .../** @type {any} */ (value) })) } }
    },
  },
  note_add: {
    method: 'POST',
    path: '/notes',
    summary: 'Add a note',
    scope: 'tools',
    body: {
      type: 'object',
      additionalProperties: false,
      properties: { text: { type: 'string', minLength: 1, maxLength: 2000 } },
      required: ['text'],
    },
    responses: { 201: { description: 'The note', schema: NOTE } },
    async handle({ body }, ctx) {
      const { text } = /** @type {Note} */ (/** @type {unknown} */ (body))
      const id = timelyId()
      const value = { text, at: new Date().toISOString() }
      await store.batch([{ op: 'put', collection: NOTES, key: id, value }], {}, ctx)
      return { status: 201, body: { id, ...value } }
    },
  },
  note_remove: {
    method: 'DELETE',
    path: '/notes/:id',
    summary: 'Remove a note',
    scope: 'tools',
    responses: { 204: { description: 'The note is gone.' } },
    async handle({ params: { id = '' } }, ctx) {
      if (!(await store.get(NOTES, id, ctx)))
        throw svcError('INVALID_VALUE', 'there is no such note', { details: { field: 'id', reason: 'not found' } })
      await store.batch([{ op: 'delete', collection: NOTES, key: id }], {}, ctx)
      return { status: 204 }
    },
  },
})

export default definePlugin({
  requires: { store: Store },
  async setup(scope, { store }) {
    await openSpace(store, SPACE, {}, systemContext(scope.signal))
    scope.add(ConsolePages, 'notes', { title: 'Notes', scope: 'read' })
    for (const [name, route] of Object.entries(createRoutes(store))) scope.add(Routes, name, route)
  },
})
