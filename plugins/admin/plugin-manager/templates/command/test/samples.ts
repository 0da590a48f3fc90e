import type { PluginSamples } from '@svc/testing'

/** What the kit needs to run the plugin: nothing. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = {}

export default samples
