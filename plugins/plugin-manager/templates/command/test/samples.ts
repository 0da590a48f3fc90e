import type { PluginSamples } from '@svc/core/testing'

/** What the kit needs to run the plugin: nothing. */
//js: /** @type {import('@svc/core/testing').PluginSamples} */
const samples: PluginSamples = {}

export default samples
