import { definePlugin, svcError, systemContext } from '@svc/core'
import { ConsolePages, Routes, Store, Tools } from '@svc/core/contracts'
import { openSpace, timelyId } from '@svc/storage-kit'

/** @typedef {import('@svc/core/contracts').Route} Route */
/** @typedef {import('@svc/core/contracts').Tool} Tool */
/** @typedef {{ text: string, at: string }} Note */

const NOTES = 'notes'
const RUN_NOTES = 'run_notes'
const SPACE = {
  name: 'notes',
  version: 1,
  // keys sort by time; those of runs begin with the id of the run
  collections: { [NOTES]: {}, [RUN_NOTES]: {} },
}
const MOST = 200

const NOTE = {
  type: 'object',
  properties: { id: { type: 'string' }, text: { type: 'string' }, at: { type: 'string', format: 'date-time' } },
  required: ['id', 'text', 'at'],
}

const LIST = {
  description: 'The notes',
  schema: { type: 'object', properties: { notes: { type: 'array', items: NOTE } }, required: ['notes'] },
}
const TEXT = {
  type: 'object',
  additionalProperties: false,
  properties: { text: { type: 'string', minLength: 1, maxLength: 2000 } },
  required: ['text'],
}

/** @type {(store: Store) => Record<string, Route>} */
const createRoutes = store => ({
  notes: {
    method: 'GET',
    path: '/notes',
    summary: `List the last ${MOST} notes, newest first`,
    scope: 'read',
    responses: { 200: LIST },
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
    body: TEXT,
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

/** @type {(store: Store) => Record<string, Route>} */
const createRunRoutes = store => ({
  run_notes: {
    method: 'GET',
    path: '/notes/runs/:run',
    summary: `List the last ${MOST} notes on a run, newest first`,
    scope: 'read',
    responses: { 200: LIST },
    async handle({ params: { run = '' } }, ctx) {
      const query = { from: `${run}/`, to: `${run}0`, reverse: true, limit: MOST } // '0' follows '/'
      const { records } = await store.range(RUN_NOTES, query, ctx)
      return { body: { notes: records.map(({ key, value }) => ({ id: key, .../** @type {any} */ (value) })) } }
    },
  },
  run_note_add: {
    method: 'POST',
    path: '/notes/runs/:run',
    summary: 'Add a note to a run',
    scope: 'tools',
    body: TEXT,
    responses: { 201: { description: 'The note', schema: NOTE } },
    async handle({ params: { run = '' }, body }, ctx) {
      const { text } = /** @type {Note} */ (/** @type {unknown} */ (body))
      const id = `${run}/${timelyId()}`
      const value = { text, at: new Date().toISOString() }
      await store.batch([{ op: 'put', collection: RUN_NOTES, key: id, value }], {}, ctx)
      return { status: 201, body: { id, ...value } }
    },
  },
})

/** @type {(store: Store) => Tool} */
const createFindNotes = store => ({
  description: 'Finds notes of the operators that contain a text',
  category: 'notes',
  effects: ['read'],
  parameters: {
    type: 'object',
    additionalProperties: false,
    properties: { text: { type: 'string', minLength: 1, maxLength: 200, description: 'A part of the note' } },
    required: ['text'],
  },
  async call({ text }, ctx) {
    const wanted = /** @type {string} */ (text).toLowerCase()
    const { records } = await store.range(NOTES, { reverse: true, limit: MOST }, ctx)
    const notes = records
      .map(({ value }) => /** @type {Note} */ (/** @type {unknown} */ (value)))
      .filter(note => note.text.toLowerCase().includes(wanted))
      .map(({ text, at }) => ({ text, at }))
    return { content: [], structured: { count: notes.length, notes } }
  },
})

export default definePlugin({
  requires: { store: Store },
  async setup(scope, { store }) {
    await openSpace(store, SPACE, {}, systemContext(scope.signal))
    scope.add(ConsolePages, 'notes', { title: 'Notes', scope: 'read' })
    scope.add(ConsolePages, 'notes_panel', { title: 'Notes', scope: 'read', view: 'panel.json', place: 'overview' })
    scope.add(ConsolePages, 'notes_of_run', { title: 'Notes', scope: 'read', view: 'run.json', place: 'run' })
    scope.add(ConsolePages, 'notes_found', {
      title: 'Notes found',
      scope: 'read',
      view: 'found.json',
      place: 'tool_result',
      tools: ['find_notes'],
    })
    scope.add(Tools, 'find_notes', createFindNotes(store))
    const routes = { ...createRoutes(store), ...createRunRoutes(store) }
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
  },
})
