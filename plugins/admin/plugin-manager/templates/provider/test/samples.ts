import type { ModelRequest } from '@svc/core/contracts'
import type { PluginSamples } from '@svc/testing'

//js: /** @type {(text: string) => import('@svc/core/contracts').ModelRequest} */
const says = (text: string): ModelRequest => ({
  model: 'sample-1',
  messages: [{ role: 'user', parts: [{ type: 'text', text }] }],
})

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = {
  provider: {
    plain: says('a few words'),
    unicode: { request: says('Grüße, 世界'), text: 'You said: Grüße, 世界' },
    failures: { overloaded: says('/fail') },
    // more samples let the kit test more: endless, silent, tools, length, usage, midway, …
    // `connections: () => upstream.open()` tests that an abort closes the upstream call; `config` must lead to
    // `const upstream = await openUpstream(…)` of @svc/testing
  },
}

export default samples
