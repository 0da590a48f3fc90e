import { definePlugin, schema } from '@svc/core'
import { Counts, Store } from '@svc/core/contracts'
import { createCabinet } from './cabinet.js'

/** @type {import('@svc/core').Schema<{ file: string }>} */
const config = schema({
  type: 'object',
  additionalProperties: false,
  properties: { file: { type: 'string', minLength: 1, description: 'Path of the database file.' } },
  required: ['file'],
})

export default definePlugin({
  section: 'cabinet',
  config,
  provides: Store,
  alsoProvides: [Counts],
  setup: scope => scope.use(createCabinet(scope.config.file)),
})
