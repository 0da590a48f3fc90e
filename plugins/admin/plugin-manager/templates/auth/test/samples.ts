import type { PluginSamples } from '@svc/testing'

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = {
  env: { SAMPLE_WORD_KEY: 'only-the-tests-know-this-key' },
  auth: {
    sample_word: {
      good: {
        header: 'x-sample-word',
        value: 'only-the-tests-know-this-key',
        id: 'sample-word:holder',
        scopes: ['read', 'chat'],
      },
      bad: { 'of another server': 'a-key-of-another-server' },
    },
  },
}

export default samples
