import type { PluginSamples } from '@svc/testing'

/** What shows the plugin at work: `svc plugins test` and the test beside this file run the kits with it. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = {
  tools: {
    sample_word: {
      good: [{ args: { text: 'abc' } }, { args: { text: '' } }],
      // without a message the schema refuses it; with one the tool does, in these words
      bad: [{ args: {} }, { args: { text: 7 } }, { args: { text: 'x'.repeat(1001) }, message: /more than 1000/ }],
    },
  },
}

export default samples
