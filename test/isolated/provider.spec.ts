import type { RunningHost } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { ask, sandboxed, openUpstream, providerKit, testHost } from '@svc/testing'
import { expect } from 'chai'
import { REQUESTS } from '../../plugins/providers/openai/test/support/requests.ts'
import { speak } from '../../plugins/providers/openai/test/support/wire.ts'
import { LOCAL_REQUESTS } from '../../plugins/providers/local/test/support/requests.ts'
import { inSandbox, packageOf, POLICY, WHERE } from '../support/in-sandbox.ts'
import { describeWith } from '../support/needs.ts'

describe(`provider-local ${WHERE}, by the provider kit`, () => {
  let host: RunningHost
  before(async () => {
    host = await testHost(await inSandbox('provider-local'), { config: { providers: { local: {} } }, strict: false })
  })
  after(() => host.close())

  const open = () => ({ provider: host.slot(Providers).get('local')! })
  for (const testCase of providerKit(open, LOCAL_REQUESTS)) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})

describeWith('bubblewrap', 'a provider in the sandbox', () => {
  for (const [type, more] of [
    ['openai', {}],
    ['ai-sdk', { package: '@ai-sdk/openai', export: 'createOpenAI.chat', models: ['plain'] }],
  ] as const)
    it(`answers through the proxy of the host, with the key that it declares: provider-${type}`, async () => {
      await using upstream = await openUpstream(speak)
      process.env.SVC_TEST_API_KEY = 'sk-canary-4711'
      const permissions = { network: ['127.0.0.1'], env: ['*_API_KEY'] }
      const entry = { type, base_url: `${upstream.url}/v1`, api_key_env: 'SVC_TEST_API_KEY', ...more }
      await using host = await testHost([...POLICY, await sandboxed(packageOf(`provider-${type}`), POLICY, permissions)], {
        strict: false,
        config: { providers: { main: entry } },
      })
      const events = await ask(host.slot(Providers).get('main')!, REQUESTS.plain)
      expect(events.at(-1)).to.include({ type: 'finish' })
      expect(upstream.received.at(-1)!.headers.authorization).to.equal('Bearer sk-canary-4711')
      delete process.env.SVC_TEST_API_KEY
    })
})
