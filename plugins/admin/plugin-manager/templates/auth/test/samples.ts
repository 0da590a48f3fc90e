import type { PluginSamples } from '@svc/testing'

/** What shows the plugin at work: `svc plugins test` and the test beside this file run the kits with it. */
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
      bad: { 'of another server': 'a-key-that-somebody-else-gave-out' },
    },
  },
}

export default samples
