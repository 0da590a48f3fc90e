import { deepEqual } from 'node:assert/strict'

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
/** @type {import('@svc/testing').PluginSamples} */
const samples = {
  routes: {
    greetings: [
      {
        params: { language: 'en' },
        query: { name: 'Ada' },
        expect: body => deepEqual(body, { language: 'English', text: 'Hello Ada' }),
      },
    ],
  },
}

export default samples
