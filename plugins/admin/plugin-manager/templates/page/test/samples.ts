import { deepEqual } from 'node:assert/strict'
import type { PluginSamples } from '@svc/testing'

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = {
  routes: {
    sample_word_greeting: [
      { expect: body => deepEqual(body, { hello: 'world' }) },
      { query: { name: 'Ada' }, expect: body => deepEqual(body, { hello: 'Ada' }) },
    ],
  },
}

export default samples
