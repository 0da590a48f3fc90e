import type { PluginSamples } from '@svc/testing'

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = {
  tools: {
    sample_word: {
      good: [{ args: { text: 'abc' } }, { args: { text: '' } }],
      // without `message` the schema rejects it; with `message` the tool does, in these words
      bad: [{ args: {} }, { args: { text: 7 } }, { args: { text: 'x'.repeat(1001) }, message: /more than 1000/ }],
      // A tool with other effects than `read` is called with generated arguments only if you allow it:
      // madeUp: true,
    },
  },
}

export default samples
