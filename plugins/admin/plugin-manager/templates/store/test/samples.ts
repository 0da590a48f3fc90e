import type { PluginSamples } from '@svc/testing'

/** `svc plugins test` and the test beside this file run the kit of stores with it; `lasts: true` where another start finds the data again. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = { lasts: false }

export default samples
