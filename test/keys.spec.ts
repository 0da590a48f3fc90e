import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FakeUpstream } from '@svc/core/testing'
import { expect } from 'chai'
import * as anthropic from '../plugins/provider-anthropic/test/support/messages-api.ts'
import * as google from '../plugins/provider-google/test/support/gemini-api.ts'
import { runSvc } from './support/command.ts'
import { newHome, post, startService } from './support/service.ts'

const WIRES: { readonly [type: string]: { readonly key: string; open(): Promise<FakeUpstream> } } = {
  anthropic: { key: anthropic.KEY, open: () => anthropic.openMessagesApi() },
  google: { key: google.KEY, open: () => google.openGeminiApi() },
}
const PAGES = ['/api/v1/status', '/health', '/metrics', '/api/v1/profiles', '/openapi.json']
const MODELS = ['plain', 'fail-authentication', 'fail-bad_request', 'fail-network', 'midway', 'no-such-model']

for (const [type, { key, open }] of Object.entries(WIRES))
  describe(`the key of ${type}`, () => {
    let home: string
    beforeEach(async () => {
      home = await newHome()
    })
    afterEach(() => rm(home, { recursive: true, force: true }))

    it('is in no answer, log line, page, figure or command, whatever the upstream says', async () => {
      await using upstream = await open()
      const config = { providers: { mine: { type, base_url: upstream.url, api_key_env: 'MY_KEY', models: MODELS } } }
      await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
      const env = { MY_KEY: key }
      await using service = await startService({ home, env, args: ['--debug'] })
      const told: string[] = []
      for (const model of MODELS) {
        const { status, body } = await post(`${service.url}/api/v1/chat`, { message: 'hi', provider: 'mine', model })
        told.push(`${model} ${status} ${JSON.stringify(body)}`)
      }
      for (const page of PAGES) told.push(await (await fetch(`${service.url}${page}`)).text())
      for (const command of [['config', 'show'], ['plugins'], ['status']])
        told.push(JSON.stringify(await runSvc(command, { home, env })))
      await service.stop()
      told.push(service.output())
      expect(told[0]).to.match(/^plain 200 .*Hello there/)
      expect(upstream.received.some(one => JSON.stringify(one.headers).includes(key))).to.equal(true)
      // the words of the upstream came through, without the key that was in them
      expect(told.join()).to.include('[secret]')
      expect(told.filter(one => one.includes(key))).to.deep.equal([])
    })
  })
