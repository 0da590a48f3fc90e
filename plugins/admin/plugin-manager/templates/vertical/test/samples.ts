import type { PluginSamples } from '@svc/testing'

/** What the kit needs to run the plugin: the one that reads verticals. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = { beside: ['@svc/plugin-verticals'] }

export default samples
